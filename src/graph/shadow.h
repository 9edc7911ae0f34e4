// A shadow graph: the engine's graph with some nodes replaced by ours. The engine's own graph is never altered.
//
// A replaced chain of nodes becomes one GGML_OP_CUSTOM node, at the place of the chain's last node and writing to that
// node's memory, followed by copies of the chain's nodes that the engine skips, as they lack the COMPUTE flag. When our
// node fails, it gives the copies that flag: they are the next nodes to run, on the same threads, and leave the
// engine's own result. All other nodes are the engine's tensors themselves.
#pragma once

#include "graph/model_graph.h"

#include "ggml-impl.h"

#include <functional>
#include <memory>
#include <vector>

namespace cascade::graph {

inline Nodes nodes_of(const ggml_cgraph & graph) { return { graph.nodes, static_cast<size_t>(graph.n_nodes) }; }

// Computes part `part` of `parts` of a replaced chain; called once for each part, from different threads. false, or an
// exception: the chain's own nodes compute it. Must write nothing but the chain's output and memory of its own.
using NodeFunction = std::function<bool(int part, int parts)>;

struct Replacement {
    std::vector<int> nodes; // of the original graph, in order
    NodeFunction function;
};

// Nodes that stand in the place of one; they belong to somebody else.
struct Substitution {
    int node = -1;
    std::vector<ggml_tensor *> nodes;
};

class Shadow {
  public:
    // Throws std::bad_alloc at most. The original graph's tensors must outlive the shadow.
    Shadow(const ggml_cgraph & original, std::vector<Replacement> replacements,
           const std::vector<Substitution> & substitutions = {});
    ~Shadow();
    Shadow(const Shadow &) = delete;
    Shadow & operator=(const Shadow &) = delete;

    ggml_cgraph * graph() { return &shadow; }

    // The same nodes may come again in another graph object: takes over its tables, which the engine consults.
    void adopt(const ggml_cgraph & same_nodes);

    struct Outcome {
        int failures = 0;         // replaced chains that the engine had to compute
        int64_t microseconds = 0; // thread 0 inside our functions
    };
    // After each computation: what happened in it. Arms the shadow for the next one.
    Outcome finish();

  private:
    struct Taken;
    std::vector<std::unique_ptr<Taken>> taken;
    std::vector<ggml_tensor *> nodes;
    ggml_cgraph shadow;
};

// Why replacing this chain by one node at its end would not be safe: memory of its sources is reused before that, or
// the fallback would write over something alive. Empty: it is safe.
std::string replacement_hazard(const ggml_cgraph & graph, const AttentionSite & site);

// A number that changes whenever anything changes that reading or rewriting looks at: for graphs without a uid.
uint64_t fingerprint(Nodes nodes);

} // namespace cascade::graph
