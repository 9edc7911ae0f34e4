// Tells which cells of KV caches change, whoever changes them: a graph, a restored state, a clearing.
//
// A cache is named by the address of its memory, as the tensors that speak of it come and go. Cells are counted over
// all streams. What can change a cache is listed in docs/plugin.md.
#pragma once

#include "backend/cache_shape.h"
#include "graph/cache_writes.h"

#include <span>
#include <vector>

namespace cascade::backend {

// Told before memory changes. Calls may come from any thread that computes or restores, one at a time, and must not
// call a CacheWatch: a lock is held.
class CacheListener {
  public:
    virtual void cells_change(const void * cache, std::span<const int64_t> cells) noexcept = 0;
    virtual void cache_changes(const void * cache) noexcept = 0; // any of its cells
    virtual void cache_goes(const void * cache) noexcept = 0;    // its memory will be freed; it is watched no more

  protected:
    ~CacheListener() = default;
};

class CacheWatch {
  public:
    CacheWatch() = default;
    ~CacheWatch();
    CacheWatch(const CacheWatch &) = delete;
    CacheWatch & operator=(const CacheWatch &) = delete;

    // Who is told; nullptr: nobody. Caches watched so far are forgotten.
    void listen(CacheListener * new_listener) noexcept;

    // Watches a cache from now on. false: that can't be done, and nothing is known about its cells. Cheap for a cache
    // that is watched already.
    bool watch(const ggml_tensor & root, CellLayout layout) noexcept;
    void forget(const void * cache) noexcept;

    // To be called before a graph is computed: tells what it is going to write, to all listeners of this process, as a
    // context may write into another one's cache.
    void before(const graph::CacheWrites & writes) noexcept;

    // Whether any cache of this process is watched: if not, `before` need not be called.
    static bool anything_watched() noexcept;

    // Of all caches of this process: where it isn't known what a graph writes.
    static void everything_changes() noexcept;

  private:
    // The cells that an index names in caches of one shape: layers share them.
    struct Named {
        const ggml_tensor * index = nullptr;
        int64_t stride = 0;
        int64_t rows = 0;
        int64_t offset = 0;
        CacheShape shape;
        bool known = false; // false: it names something else than cells
        std::vector<int64_t> cells;
    };

    void report(const graph::IndexedWrite & write);
    const Named & cells_named(const graph::IndexedWrite & write, const CacheShape & shape);

    CacheListener * listener = nullptr;
    std::vector<Named> named; // of the graph being reported; `named_now` of them hold
    size_t named_now = 0;
};

} // namespace cascade::backend
