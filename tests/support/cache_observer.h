// Watches every cache that a real context's attention reads, and compares what CacheWatch tells with the caches' bytes.
//
// It shares no arithmetic with what it checks: a snapshot of each cache is compared byte for byte.
#pragma once

#include "backend/cache_watch.h"
#include "cascade/settings.h"
#include "graph/model_graph.h"

#include "ggml-backend.h"

#include <map>
#include <set>
#include <string>

namespace cascade::test {

class CacheObserver final : public backend::CacheListener {
  public:
    struct Totals {
        int64_t changed = 0;    // cells whose bytes differ from those at the last check
        int64_t reported = 0;   // cells named
        int64_t whole = 0;      // caches reported as a whole
        int64_t unreported = 0; // cells that changed without a word
        int64_t caches = 0;     // that are watched
        std::string first_unreported;
    };

    void cells_change(const void * cache, std::span<const int64_t> cells) noexcept override;
    void cache_changes(const void * cache) noexcept override;
    void cache_goes(const void * cache) noexcept override;

    // Watches the caches of a graph's attention that are not watched yet.
    void watch_caches(backend::CacheWatch & watch, graph::Nodes nodes);
    void watch_cache(backend::CacheWatch & watch, const ggml_tensor & root, bool transposed);

    // What has happened since the last call.
    Totals check();

    // To be called before a context goes: its session stops watching before its caches' memory is freed.
    void forget() { caches.clear(); }

    int gone = 0; // caches whose memory went

  private:
    struct Seen {
        std::string name;
        int64_t width = 0, stream = 0, streams = 0;
        int64_t row_bytes = 0;
        bool transposed = false;
        std::string bytes;
        std::set<int64_t> cells; // reported since the last check
        bool whole = false;

        int64_t cell_at(int64_t byte) const;
    };
    std::map<const void *, Seen> caches;
};

// Registers a device in front of the CPU, as the plugin does, whose sessions report to `observer`. Once in a process.
void register_observed_device(CacheObserver & observer);

// Of that device's sessions, for tests to change.
Settings & observed_settings();

} // namespace cascade::test
