// An evaluation for the terminal and for spreadsheets, from its JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace cascade::report {

// One row for each method, in their order, and notes on how to read them.
std::string eval_table(const nlohmann::json & evaluation);

// One line for each method.
std::string eval_csv(const nlohmann::json & evaluation);

} // namespace cascade::report
