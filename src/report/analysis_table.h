// An analysis for the terminal and for spreadsheets, from its JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace cascade::report {

// A summary of all methods for each length, source and tau, then the layers of the methods named.
std::string analysis_table(const nlohmann::json & analysis, const std::vector<std::string> & layers_of);

// One line for each length, source, tau, method and layer.
std::string analysis_csv(const nlohmann::json & analysis);

} // namespace cascade::report
