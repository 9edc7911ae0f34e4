// The life of one backend: every graph the engine computes passes here, is recognised or read, planned, rewritten where
// the plan takes something over, and handed to the engine's CPU backend.
#pragma once

#include "backend/stats.h"
#include "cascade/attention.h"
#include "cascade/settings.h"
#include "graph/shadow.h"

#include "ggml-backend-impl.h"

#include <list>
#include <memory>
#include <vector>

namespace cascade::backend {

class Session {
  public:
    // `engine` is the CPU backend that computes; it must outlive the session.
    Session(ggml_backend_t engine, const Settings & settings);

    // Computes the graph. Whatever fails on our side, the engine computes its own graph instead.
    ggml_status compute(ggml_cgraph * graph) noexcept;

    // Asks the engine's allocator to keep what our nodes read until they have run: the memory of the softmax form's
    // queries, keys and mask would be reused before the chain's last node.
    void keep_sources(ggml_cgraph * graph, ggml_backend_graph_optimize_params * params) noexcept;

  private:
    // A graph that was read; without a shadow where nothing in it is ours.
    struct Known {
        uint64_t id = 0;
        int n_nodes = 0;
        const ggml_tensor * first = nullptr;
        const ggml_tensor * last = nullptr;
        std::unique_ptr<graph::Shadow> shadow;

        bool is(uint64_t other_id, const ggml_cgraph & graph) const;
    };

    Known * find_or_read(ggml_cgraph * graph, bool & recognised);
    Known read(uint64_t id, ggml_cgraph * graph);
    graph::NodeFunction reference_function(const Attention & attention);

    ggml_backend_t engine;
    const Settings & settings;
    Stats stats;
    std::list<Known> known;                // the most recently used last
    std::vector<AttentionScratch> scratch; // one for each of the engine's threads
};

} // namespace cascade::backend
