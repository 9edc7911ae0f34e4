// A model's graph as people and scripts read it.
#pragma once

#include "graph/model_graph.h"

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace cascade::report {

struct GraphSummary {
    std::string model;
    std::string architecture;
    int sliding_window = 0; // of the layers that have one
    int nodes = 0;
};

nlohmann::json graph_json(const graph::ModelGraph & graph, const GraphSummary & summary);

// Equal layers share a line.
std::string graph_table(const graph::ModelGraph & graph, const GraphSummary & summary);

} // namespace cascade::report
