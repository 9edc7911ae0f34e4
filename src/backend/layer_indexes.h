// The indexes of a context's caches: one for each layer and stream, told by a CacheWatch what changes.
//
// Changes may be told by any thread, so they wait in a list until `apply`, which comes before each computation: nobody
// reads an index in between.
#pragma once

#include "backend/cache_watch.h"
#include "cover/index/layer_index.h"
#include "graph/model_graph.h"

#include <memory>
#include <mutex>
#include <vector>

namespace cascade::backend {

using StreamIndexes = std::vector<std::shared_ptr<cover::LayerIndex>>;

class LayerIndexes final : public CacheListener {
  public:
    LayerIndexes(CacheWatch & watch, const cover::IndexOptions & options);
    ~LayerIndexes();
    LayerIndexes(const LayerIndexes &) = delete;
    LayerIndexes & operator=(const LayerIndexes &) = delete;

    // The indexes of an attention's keys and values, one for each stream; none where their cache can't be watched, or
    // where the graph's own writes into it are none that name cells. May throw std::bad_alloc.
    StreamIndexes of(const graph::AttentionSite & site, const Attention & attention, const graph::CacheWrites & writes);

    // Hands on what was told since the last time.
    void apply() noexcept;

    int64_t bytes() const;

    void cells_change(const void * cache, std::span<const int64_t> cells) noexcept override;
    void cache_changes(const void * cache) noexcept override;
    void cache_goes(const void * cache) noexcept override;

  private:
    struct Entry {
        const void * key_cache = nullptr;
        const void * value_cache = nullptr;
        const void * first_key = nullptr; // of the stream
        int64_t first_cell = 0;           // counted over all streams
        int64_t end_cell = 0;
        std::shared_ptr<cover::LayerIndex> index;
    };

    struct Change {
        const void * cache = nullptr;
        size_t first = 0; // in `cells`
        size_t count = 0; // 0: all
        bool gone = false;
    };

    void tell(const Change & change, std::span<const int64_t> of_change) noexcept;
    void apply(const Change & change) noexcept;
    std::shared_ptr<cover::LayerIndex> index_of(const graph::AttentionSite & site, const Attention & attention,
                                                int64_t stream);

    CacheWatch & watch;
    cover::IndexOptions options;
    std::vector<Entry> entries;
    std::mutex telling; // guards what follows
    std::vector<Change> changes;
    std::vector<int64_t> cells;
    bool everything = false;    // there was no room for a list
    std::vector<int64_t> local; // cells of one stream
};

} // namespace cascade::backend
