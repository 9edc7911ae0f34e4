// The watched caches of this process, and the buffers that hold them. A buffer's functions are ours while it holds a
// watched cache; they tell what they are about to change, then do as before.
#pragma once

#include "backend/cache_watch.h"

#include "ggml-backend-impl.h"

#include <atomic>
#include <map>
#include <mutex>
#include <unordered_map>

namespace cascade::backend {

class WatchedCaches {
  public:
    struct Cache {
        CacheShape shape;
        ggml_backend_buffer_t buffer = nullptr;
        struct Watcher {
            const CacheWatch * owner = nullptr;
            CacheListener * listener = nullptr;
        };
        std::vector<Watcher> watchers;

        void tell_cells(std::span<const int64_t> cells) const noexcept;
        void tell_cells(CellRange range) const noexcept;
        void tell_all() const noexcept;
    };

    // Never destroyed: a program may free its buffers after our static objects are gone.
    static WatchedCaches & instance();

    bool any() const noexcept { return count.load(std::memory_order_relaxed) != 0; }
    bool add(const CacheWatch * owner, CacheListener * listener, const ggml_tensor & root, const CacheShape & shape);
    void remove(const CacheWatch * owner) noexcept;
    void remove(const CacheWatch * owner, const void * cache) noexcept;
    void everything_changes() noexcept;

    // The rest is for holders of the lock.
    std::mutex lock;

    template <typename Function>
    void each_overlapping(const graph::MemoryRange & range, Function function) {
        auto cache = caches.upper_bound(range.begin);
        if (cache != caches.begin()) {
            --cache;
        }
        for (; cache != caches.end() && cache->first < range.end; ++cache) {
            if (cache->second.shape.memory.overlaps(range)) {
                function(cache->second);
            }
        }
    }

  private:
    friend struct BufferFunctions;
    using Caches = std::map<const std::byte *, Cache>;

    void wrap(ggml_backend_buffer_t buffer);
    void unwrap_unused() noexcept;
    Caches::iterator drop(Caches::iterator cache, const CacheWatch * owner) noexcept;

    Caches caches;
    std::unordered_map<ggml_backend_buffer_t, ggml_backend_buffer_i> originals; // of wrapped buffers
    std::atomic<size_t> count = 0;
};

} // namespace cascade::backend
