// Small questions about the engine's tensors that reading and rewriting share.
#pragma once

#include "cascade/attention.h"

#include "ggml.h"

#include <string_view>

namespace cascade::graph {

// Graphs may come from another machine, so walks end: no chain of a real graph is as long.
constexpr int longest_walk = 64;

// The tensor whose memory this one is a view of; itself where it is none, nullptr where that has no end.
const ggml_tensor * root_of(const ggml_tensor * tensor);

// RESHAPE, VIEW, PERMUTE, TRANSPOSE: no computation, only another look at the same memory.
bool is_view_op(const ggml_tensor * tensor);

// The tensor behind any number of view ops; nullptr where they have no end.
const ggml_tensor * skip_views(const ggml_tensor * tensor);

// A tensor that no node computes: a weight, a cache or an input of the graph.
bool is_leaf(const ggml_tensor * tensor);

// The layer that a name speaks of: "blk.7.attn_q.weight", "cache_k_l7", "Qcur-7 (view)"; -1 where it speaks of none.
int layer_in_name(std::string_view name);

// Parameters of an op, by position.
float float_param(const ggml_tensor * tensor, int index);
int int_param(const ggml_tensor * tensor, int index);

// The memory of two tensors has a byte in common.
bool overlap(const ggml_tensor * a, const ggml_tensor * b);

// How a type's packed values become floats; nullptr where the engine has no way.
ToFloat to_float(ggml_type type);

// The engine's CPU kernels multiply quantised keys with a query rounded to Q8: the rounding they use, for a reference
// that means to agree with them; nullptr for types that take the query (nearly) as it is.
Round query_rounding(ggml_type key_type);

} // namespace cascade::graph
