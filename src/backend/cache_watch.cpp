#include "backend/cache_watch.h"

#include "backend/watched_caches.h"

#include <algorithm>

namespace cascade::backend {

namespace {

// Plain memory, whose owner frees it as one: not a bundle of buffers, which the engine recognises by its functions.
bool can_be_wrapped(ggml_backend_buffer_t buffer, const graph::MemoryRange & memory) {
    if (buffer == nullptr || !ggml_backend_buffer_is_host(buffer) || buffer->iface.get_base == nullptr ||
        ggml_backend_buffer_is_multi_buffer(buffer) || ggml_backend_buffer_is_meta(buffer)) {
        return false;
    }
    const auto * base = static_cast<const std::byte *>(buffer->iface.get_base(buffer));
    return base != nullptr && graph::MemoryRange{ base, base + buffer->size }.contains(memory);
}

// Cells as rows: the index counts them from the write's first row. false: it names something else than cells.
bool name_rows(const graph::IndexedWrite & write, int64_t offset, const CacheShape & shape,
               std::vector<int64_t> & cells) {
    if (static_cast<int64_t>(write.node->nb[1]) != shape.row_bytes || offset % shape.row_bytes != 0) {
        return false;
    }
    const int64_t first = offset / shape.row_bytes;
    cells.reserve(static_cast<size_t>(write.rows()));
    for (int64_t i = 0; i < write.rows(); i++) {
        const int64_t row = write.row(i);
        if (row < 0 || row >= write.node->ne[1]) {
            return false;
        }
        cells.push_back(first + row);
    }
    return true;
}

// Cells as columns: the index counts values. The engine names a cell's values one after the other, a line apart.
bool name_columns(const graph::IndexedWrite & write, int64_t offset, const CacheShape & shape,
                  std::vector<int64_t> & cells) {
    if (write.node->ne[0] != 1 || static_cast<int64_t>(write.node->nb[1]) != shape.value_bytes ||
        offset % shape.value_bytes != 0) {
        return false;
    }
    const int64_t first = offset / shape.value_bytes;
    const int64_t stream_values = shape.stream * shape.width;
    int64_t same_cell = -1; // the value that would belong to the cell named last
    int64_t stream_end = 0;
    for (int64_t i = 0; i < write.rows(); i++) {
        const int64_t row = write.row(i);
        if (row < 0 || row >= write.node->ne[1]) {
            return false;
        }
        const int64_t value = first + row;
        if (value != same_cell || value >= stream_end) {
            const int64_t stream = value / stream_values;
            stream_end = (stream + 1) * stream_values;
            cells.push_back(stream * shape.stream + value % shape.stream);
        }
        same_cell = value + shape.stream;
    }
    return true;
}

} // namespace

CacheWatch::~CacheWatch() { listen(nullptr); }

void CacheWatch::listen(CacheListener * new_listener) noexcept {
    WatchedCaches::instance().remove(this);
    listener = new_listener;
}

bool CacheWatch::watch(const ggml_tensor & root, CellLayout layout) noexcept {
    if (listener == nullptr) {
        return false;
    }
    const auto shape = shape_of(root, layout);
    if (!shape || !can_be_wrapped(root.buffer, shape->memory)) {
        return false;
    }
    try {
        return WatchedCaches::instance().add(this, listener, root, *shape);
    } catch (...) {
        return false; // no memory for it
    }
}

void CacheWatch::forget(const void * cache) noexcept { WatchedCaches::instance().remove(this, cache); }

bool CacheWatch::anything_watched() noexcept { return WatchedCaches::instance().any(); }

void CacheWatch::everything_changes() noexcept { WatchedCaches::instance().everything_changes(); }

void CacheWatch::before(const graph::CacheWrites & writes) noexcept {
    WatchedCaches & watched = WatchedCaches::instance();
    if (!watched.any()) {
        return;
    }
    const std::lock_guard guard(watched.lock);
    named_now = 0;
    for (const graph::IndexedWrite & write : writes.indexed) {
        if (write.runs()) {
            report(write);
        }
    }
    for (const graph::MemoryRange & range : writes.others) {
        watched.each_overlapping(range, [](const WatchedCaches::Cache & cache) { cache.tell_all(); });
    }
}

void CacheWatch::report(const graph::IndexedWrite & write) {
    const graph::MemoryRange memory = graph::memory_of(*write.node);
    WatchedCaches::instance().each_overlapping(memory, [&](const WatchedCaches::Cache & cache) {
        const Named * cells = nullptr;
        if (cache.shape.memory.contains(memory)) {
            try {
                cells = &cells_named(write, cache.shape);
            } catch (...) {
                cells = nullptr; // no memory: whatever they are
            }
        }
        if (cells != nullptr && cells->known) {
            cache.tell_cells(cells->cells);
        } else {
            cache.tell_all();
        }
    });
}

const CacheWatch::Named & CacheWatch::cells_named(const graph::IndexedWrite & write, const CacheShape & shape) {
    const auto stride = static_cast<int64_t>(write.node->nb[1]);
    const int64_t offset = static_cast<const std::byte *>(write.node->data) - shape.memory.begin;
    const auto end = named.begin() + static_cast<std::ptrdiff_t>(named_now);
    const auto found = std::find_if(named.begin(), end, [&](const Named & one) {
        return one.index == write.index && one.stride == stride && one.rows == write.node->ne[1] &&
               one.offset == offset && one.shape.layout == shape.layout && one.shape.width == shape.width &&
               one.shape.stream == shape.stream && one.shape.row_bytes == shape.row_bytes;
    });
    if (found != end) {
        return *found;
    }
    if (named_now == named.size()) {
        named.emplace_back();
    }
    Named & one = named[named_now];
    one.cells.clear();
    one.known = shape.layout == CellLayout::rows ? name_rows(write, offset, shape, one.cells)
                                                 : name_columns(write, offset, shape, one.cells);
    one.index = write.index;
    one.stride = stride;
    one.rows = write.node->ne[1];
    one.offset = offset;
    one.shape = shape;
    named_now++;
    return one;
}

} // namespace cascade::backend
