#include "backend/layer_indexes.h"

#include <algorithm>

namespace cascade::backend {

LayerIndexes::LayerIndexes(CacheWatch & a_watch, const cover::IndexOptions & some_options)
    : watch(a_watch), options(some_options) {
    watch.listen(this);
}

LayerIndexes::~LayerIndexes() { watch.listen(nullptr); }

StreamIndexes LayerIndexes::of(const graph::AttentionSite & site, const Attention & a,
                               const graph::CacheWrites & writes) {
    if (site.key_cache == nullptr || site.value_cache == nullptr || a.key.row_stride == 0 ||
        !writes.name_cells_in(graph::memory_of(*site.key_cache)) ||
        !writes.name_cells_in(graph::memory_of(*site.value_cache)) || !watch.watch(*site.key_cache, CellLayout::rows) ||
        !watch.watch(*site.value_cache, CellLayout::rows)) {
        return {};
    }
    StreamIndexes indexes;
    indexes.reserve(static_cast<size_t>(a.streams));
    for (int64_t stream = 0; stream < a.streams; stream++) {
        indexes.push_back(index_of(site, a, stream));
    }
    return indexes;
}

std::shared_ptr<cover::LayerIndex> LayerIndexes::index_of(const graph::AttentionSite & site, const Attention & a,
                                                          int64_t stream) {
    Entry wanted;
    wanted.key_cache = site.key_cache->data;
    wanted.value_cache = site.value_cache->data;
    wanted.first_key = a.key.base + (static_cast<size_t>(stream) * a.key.stream_stride);
    for (const Entry & entry : entries) {
        if (entry.key_cache == wanted.key_cache && entry.value_cache == wanted.value_cache &&
            entry.first_key == wanted.first_key) {
            return entry.index;
        }
    }
    const auto offset = static_cast<const char *>(wanted.first_key) - static_cast<const char *>(wanted.key_cache);
    wanted.first_cell = offset / static_cast<int64_t>(a.key.row_stride);
    wanted.end_cell = wanted.first_cell + site.key_cache->ne[1];
    cover::Cells shape;
    shape.kv_heads = a.kv_heads;
    shape.key_size = a.key_size;
    shape.value_size = a.value_size;
    wanted.index = std::make_shared<cover::LayerIndex>(shape, options);
    entries.push_back(wanted);
    return wanted.index;
}

void LayerIndexes::tell(const Change & change, std::span<const int64_t> of_change) noexcept {
    const std::lock_guard guard(telling);
    try {
        Change kept = change;
        kept.first = cells.size();
        kept.count = of_change.size();
        cells.insert(cells.end(), of_change.begin(), of_change.end());
        changes.push_back(kept);
    } catch (...) {
        everything = true;
    }
}

void LayerIndexes::cells_change(const void * cache, std::span<const int64_t> changed) noexcept {
    if (!changed.empty()) {
        tell({ cache, 0, 0, false }, changed);
    }
}

void LayerIndexes::cache_changes(const void * cache) noexcept { tell({ cache, 0, 0, false }, {}); }

void LayerIndexes::cache_goes(const void * cache) noexcept { tell({ cache, 0, 0, true }, {}); }

void LayerIndexes::apply() noexcept {
    const std::lock_guard guard(telling);
    for (const Change & change : changes) {
        apply(change);
    }
    for (const Entry & entry : entries) {
        if (everything) {
            entry.index->all_change();
        }
    }
    changes.clear();
    cells.clear();
    everything = false;
}

void LayerIndexes::apply(const Change & change) noexcept {
    const auto concerned = [&](const Entry & entry) {
        return entry.key_cache == change.cache || entry.value_cache == change.cache;
    };
    for (const Entry & entry : entries) {
        if (!concerned(entry)) {
            continue;
        }
        try {
            local.clear();
            local.reserve(change.count);
            for (const int64_t cell : std::span<const int64_t>(cells).subspan(change.first, change.count)) {
                if (cell >= entry.first_cell && cell < entry.end_cell) {
                    local.push_back(cell - entry.first_cell);
                }
            }
            change.count > 0 ? entry.index->cells_change(local) : entry.index->all_change();
        } catch (...) {
            entry.index->all_change();
        }
    }
    if (change.gone) {
        std::erase_if(entries, concerned);
    }
}

int64_t LayerIndexes::bytes() const {
    int64_t sum = 0;
    for (const Entry & entry : entries) {
        sum += entry.index->bytes();
    }
    return sum;
}

} // namespace cascade::backend
