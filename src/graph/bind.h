// From a site of the graph to the arrays that src/attend works on.
#pragma once

#include "cascade/attention.h"
#include "graph/model_graph.h"

#include <string>

namespace cascade::graph {

// Fills `attention` with the site's sizes, numbers and memory. Returns an empty string, or why our code can't read it
// (a type without conversion, memory that isn't the host's, a layout the engine doesn't use today).
std::string bind_attention(const AttentionSite & site, Attention & attention);

} // namespace cascade::graph
