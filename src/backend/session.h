// The life of one backend: every graph the engine computes passes here, is recognised or read, planned, rewritten where
// the plan takes something over, and handed to the engine's CPU backend.
#pragma once

#include "attend/joint/joint_attention.h"
#include "attend/kernels/exact.h"
#include "backend/cache_watch.h"
#include "backend/layer_epsilons.h"
#include "backend/layer_indexes.h"
#include "backend/layer_subspaces.h"
#include "backend/stats.h"
#include "cascade/attention.h"
#include "cascade/settings.h"
#include "graph/shadow.h"
#include "plan/plan.h"

#include "ggml-backend-impl.h"

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
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

    // Every graph is shown to it before it is computed, while any cache is watched.
    CacheWatch & cache_watch() { return watch; }

  private:
    // A graph that was read; without a shadow where nothing in it is ours.
    struct Known {
        uint64_t id = 0;
        int n_nodes = 0;
        const ggml_tensor * first = nullptr;
        const ggml_tensor * last = nullptr;
        std::unique_ptr<GatedInputs> gated;
        std::unique_ptr<graph::Shadow> shadow;
        std::optional<graph::CacheWrites> writes; // read when first asked for

        bool is(uint64_t other_id, const ggml_cgraph & graph) const;
    };

    // What was decided for an attention the last time, and how it went.
    struct Experience {
        Way way = Way::engine;
        double opened = -1.0; // share of what is covered; below 0: nothing was

        void see(const attend::JointCounts & now, const attend::JointCounts & before) {
            const double covered = now.covered - before.covered;
            if (covered > 0.0) {
                const double share = (now.opened - before.opened) / covered;
                opened = opened < 0.0 ? share : 0.5 * (opened + share);
            }
        }
    };

    Known & find_or_read(ggml_cgraph * graph, bool & recognised);
    void announce_writes(Known & found, const ggml_cgraph & graph);
    Known read(uint64_t id, ggml_cgraph * graph);
    Decision plan(const graph::Layer & layer, const graph::AttentionSite & site, const Attention & attention,
                  float epsilon, int & threads);
    graph::NodeFunction function_of(Way way, int layer, const graph::AttentionSite & site, const Attention & attention,
                                    float epsilon, const std::optional<graph::CacheWrites> & writes);
    graph::NodeFunction reference_function(const Attention & attention);
    graph::NodeFunction fast_function(const Attention & attention);
    graph::NodeFunction joint_function(const Attention & attention, float epsilon, StreamIndexes indexes,
                                       Experience & experience);
    Experience & experience_of(int layer, const Attention & attention);
    bool attend_fast(const Attention & attention, int part, int parts);
    bool injected_fault() const;

    ggml_backend_t engine;
    const Settings & settings;
    Stats stats;
    LayerEpsilons epsilons;
    LayerSubspaces subspaces;
    CacheWatch watch;
    std::optional<LayerIndexes> indexes; // in modes that approximate
    std::unique_ptr<attend::JointAttention> joint;
    std::unique_ptr<attend::ExactShared> exact_shared;
    std::vector<attend::ExactScratch> exact_scratch; // one for each of the engine's threads
    std::set<int> indexed_layers;
    std::map<std::pair<int, int64_t>, Experience> experiences; // by layer and number of queries
    std::list<Known> known;                                    // the most recently used last
    std::vector<AttentionScratch> scratch;                     // one for each of the engine's threads
};

} // namespace cascade::backend
