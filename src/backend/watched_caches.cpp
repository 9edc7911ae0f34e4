#include "backend/watched_caches.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace cascade::backend {

// What a wrapped buffer calls. Each function tells first and then writes, so that a listener that forgets cells forgets
// them even where the write fails.
struct BufferFunctions {
    static ggml_backend_buffer_i original(ggml_backend_buffer_t buffer) noexcept {
        WatchedCaches & watched = WatchedCaches::instance();
        const std::lock_guard guard(watched.lock);
        const auto found = watched.originals.find(buffer);
        return found != watched.originals.end() ? found->second : buffer->iface; // unwrapped a moment ago
    }

    static void tell(const graph::MemoryRange & range) noexcept {
        WatchedCaches & watched = WatchedCaches::instance();
        const std::lock_guard guard(watched.lock);
        watched.each_overlapping(
            range, [&](const WatchedCaches::Cache & cache) { cache.tell_cells(cache.shape.cells_in(range)); });
    }

    static void tell(const ggml_tensor * tensor, size_t offset, size_t size) noexcept {
        const auto * begin = static_cast<const std::byte *>(tensor->data) + offset;
        tell({ begin, begin + size });
    }

    static void tell_all(ggml_backend_buffer_t buffer) noexcept {
        WatchedCaches & watched = WatchedCaches::instance();
        const std::lock_guard guard(watched.lock);
        for (const auto & [memory, cache] : watched.caches) {
            if (cache.buffer == buffer) {
                cache.tell_all();
            }
        }
    }

    static void free_buffer(ggml_backend_buffer_t buffer) noexcept {
        WatchedCaches & watched = WatchedCaches::instance();
        {
            const std::lock_guard guard(watched.lock);
            for (auto cache = watched.caches.begin(); cache != watched.caches.end();) {
                if (cache->second.buffer != buffer) {
                    ++cache;
                    continue;
                }
                for (const auto & watcher : cache->second.watchers) {
                    watcher.listener->cache_goes(cache->first);
                }
                cache = watched.caches.erase(cache);
            }
            watched.unwrap_unused();
        }
        if (buffer->iface.free_buffer != nullptr) {
            buffer->iface.free_buffer(buffer);
        }
    }

    static void memset_tensor(ggml_backend_buffer_t buffer, ggml_tensor * tensor, uint8_t value, size_t offset,
                              size_t size) noexcept {
        tell(tensor, offset, size);
        original(buffer).memset_tensor(buffer, tensor, value, offset, size);
    }

    static void set_tensor(ggml_backend_buffer_t buffer, ggml_tensor * tensor, const void * data, size_t offset,
                           size_t size) noexcept {
        tell(tensor, offset, size);
        original(buffer).set_tensor(buffer, tensor, data, offset, size);
    }

    static void set_tensor_2d(ggml_backend_buffer_t buffer, ggml_tensor * tensor, const void * data, size_t offset,
                              size_t size, size_t copies, size_t stride, size_t data_stride) noexcept {
        for (size_t i = 0; i < copies; i++) {
            tell(tensor, offset + i * stride, size);
        }
        original(buffer).set_tensor_2d(buffer, tensor, data, offset, size, copies, stride, data_stride);
    }

    static bool cpy_tensor(ggml_backend_buffer_t buffer, const ggml_tensor * from, ggml_tensor * to) noexcept {
        tell(graph::memory_of(*to));
        return original(buffer).cpy_tensor(buffer, from, to);
    }

    static void clear(ggml_backend_buffer_t buffer, uint8_t value) noexcept {
        tell_all(buffer);
        original(buffer).clear(buffer, value);
    }

    static void reset(ggml_backend_buffer_t buffer) noexcept {
        tell_all(buffer);
        original(buffer).reset(buffer);
    }

    // A function that a buffer lacks stays away: the engine does without it.
    template <typename Function, typename Ours>
    static void replace(Function & function, Ours ours) {
        function = function != nullptr ? ours : nullptr;
    }

    static void install(ggml_backend_buffer_i & iface) {
        iface.free_buffer = free_buffer; // even where it does nothing else, it is when the memory goes
        replace(iface.memset_tensor, memset_tensor);
        replace(iface.set_tensor, set_tensor);
        replace(iface.set_tensor_2d, set_tensor_2d);
        replace(iface.cpy_tensor, cpy_tensor);
        replace(iface.clear, clear);
        replace(iface.reset, reset);
    }
};

void WatchedCaches::Cache::tell_cells(std::span<const int64_t> cells) const noexcept {
    for (const Watcher & watcher : watchers) {
        watcher.listener->cells_change(shape.memory.begin, cells);
    }
}

void WatchedCaches::Cache::tell_cells(CellRange range) const noexcept {
    if (range.end - range.first == shape.cells) {
        tell_all();
        return;
    }
    std::array<int64_t, 256> cells; // a state is restored where memory may be short
    while (range.first < range.end) {
        const auto n = static_cast<size_t>(std::min<int64_t>(range.end - range.first, cells.size()));
        std::iota(cells.begin(), cells.begin() + n, range.first);
        tell_cells(std::span(cells.data(), n));
        range.first += static_cast<int64_t>(n);
    }
}

void WatchedCaches::Cache::tell_all() const noexcept {
    for (const Watcher & watcher : watchers) {
        watcher.listener->cache_changes(shape.memory.begin);
    }
}

WatchedCaches & WatchedCaches::instance() {
    static WatchedCaches & only = *new WatchedCaches;
    return only;
}

bool WatchedCaches::add(const CacheWatch * owner, CacheListener * listener, const ggml_tensor & root,
                        const CacheShape & shape) {
    const std::lock_guard guard(lock);
    const auto found = caches.find(shape.memory.begin);
    if (found != caches.end()) {
        Cache & cache = found->second;
        if (!(cache.shape == shape) || cache.buffer != root.buffer) {
            return false;
        }
        const bool known = std::any_of(cache.watchers.begin(), cache.watchers.end(),
                                       [&](const Cache::Watcher & watcher) { return watcher.owner == owner; });
        if (!known) {
            cache.watchers.push_back({ owner, listener });
        }
        return true;
    }
    bool overlaps = false;
    each_overlapping(shape.memory, [&](const Cache &) { overlaps = true; });
    if (overlaps) {
        return false;
    }
    Cache cache = { shape, root.buffer, { { owner, listener } } };
    wrap(root.buffer);
    try {
        caches.emplace(shape.memory.begin, std::move(cache));
    } catch (...) {
        unwrap_unused();
        throw;
    }
    count = caches.size();
    return true;
}

WatchedCaches::Caches::iterator WatchedCaches::drop(Caches::iterator cache, const CacheWatch * owner) noexcept {
    auto & watchers = cache->second.watchers;
    std::erase_if(watchers, [&](const Cache::Watcher & watcher) { return watcher.owner == owner; });
    return watchers.empty() ? caches.erase(cache) : std::next(cache);
}

void WatchedCaches::remove(const CacheWatch * owner) noexcept {
    const std::lock_guard guard(lock);
    for (auto cache = caches.begin(); cache != caches.end();) {
        cache = drop(cache, owner);
    }
    unwrap_unused();
}

void WatchedCaches::remove(const CacheWatch * owner, const void * memory) noexcept {
    const std::lock_guard guard(lock);
    const auto found = caches.find(static_cast<const std::byte *>(memory));
    if (found != caches.end()) {
        drop(found, owner);
        unwrap_unused();
    }
}

void WatchedCaches::everything_changes() noexcept {
    const std::lock_guard guard(lock);
    for (const auto & [memory, cache] : caches) {
        cache.tell_all();
    }
}

void WatchedCaches::wrap(ggml_backend_buffer_t buffer) {
    if (originals.emplace(buffer, buffer->iface).second) {
        BufferFunctions::install(buffer->iface);
    }
}

void WatchedCaches::unwrap_unused() noexcept {
    std::erase_if(originals, [&](const auto & wrapped) {
        const bool used = std::any_of(caches.begin(), caches.end(),
                                      [&](const auto & one) { return one.second.buffer == wrapped.first; });
        if (!used) {
            wrapped.first->iface = wrapped.second;
        }
        return !used;
    });
    count = caches.size();
}

} // namespace cascade::backend
