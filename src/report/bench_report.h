// `cascade bench` as one JSON object, and as tables.
#pragma once

#include "report/bench.h"

#include <nlohmann/json.hpp>
#include <string>

namespace cascade::report {

// Each of `tests` is our row as llama-bench would print it, the ratio and its noise, and the bare engine's row in
// `bare`.
nlohmann::ordered_json bench_json(const Bench & bench);

// A table like llama-bench's, then what to know about its figures.
std::string bench_table(const Bench & bench);

} // namespace cascade::report
