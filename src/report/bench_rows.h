// Rows as llama-bench prints them, so that scripts that read its output read ours: the same columns in the same order
// and spelling, then our own. Two rows for a test, the bare engine's and ours, which `backends` tells apart.
#pragma once

#include "report/bench.h"

#include <nlohmann/json.hpp>
#include <string>

namespace cascade::report {

// Columns in order; samples_ns and samples_ts, which only JSON has, at the end.
nlohmann::ordered_json bench_row(const BenchInfo & info, const BenchTest & test, bool ours);

std::string bench_csv(const Bench & bench);
std::string bench_jsonl(const Bench & bench);
std::string bench_sql(const Bench & bench);

} // namespace cascade::report
