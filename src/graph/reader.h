// The parts of read_graph, one file each.
#pragma once

#include "graph/model_graph.h"

#include <optional>
#include <unordered_map>

namespace cascade::graph {

// Positions and numbers of readers of every node of a graph.
class NodeIndex {
  public:
    explicit NodeIndex(Nodes nodes);
    int position(const ggml_tensor * tensor) const; // -1: not a node of this graph
    int readers(const ggml_tensor * tensor) const;  // nodes that have it as a source
    const ggml_tensor * next_reader(int after, ggml_op op, const ggml_tensor * source) const; // soon after that node

    const Nodes nodes;

  private:
    std::unordered_map<const ggml_tensor *, int> positions;
    std::vector<int> reader_counts;
};

// One step from a tensor towards what it was computed from, through everything that keeps a token's row a token's
// row (views, copies, norms, biases, rotary embedding, cache writes); nullptr at a matrix product or an end.
const ggml_tensor * step_back(const ggml_tensor * tensor);

// The first tensor of that op, from this one backwards by step_back; nullptr: none.
const ggml_tensor * find_back(const ggml_tensor * tensor, ggml_op op);

// The weight that a MUL_MAT or MUL_MAT_ID multiplies; nullptr where its first source is no weight.
const ggml_tensor * weight_of(const ggml_tensor * node);

// The attention that ends in, or is, this node. `why` says what is odd about one that can't be understood.
std::optional<AttentionSite> read_attention(const NodeIndex & index, int node, std::string & why);

std::optional<LinearSite> read_linear(int node, const ggml_tensor * tensor);

} // namespace cascade::graph
