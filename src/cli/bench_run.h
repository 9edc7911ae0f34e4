// The bare engine and ours at the same work in one process, over one copy of the weights, turn by turn.
#pragma once

#include "report/bench.h"

#include "llama.h"

#include <string>
#include <utility>
#include <vector>

namespace cascade::cli {

struct BenchOptions {
    std::string model;
    std::string text; // file whose tokens are computed; empty: random ones, as llama-bench
    std::vector<int> prompts = { 512 };
    std::vector<int> generated = { 128 };
    std::vector<std::pair<int, int>> both; // prompt, then generated
    std::vector<int> depths = { 0 };
    int batch = 2048;
    int ubatch = 512;
    int threads = 0;
    ggml_type type_k = GGML_TYPE_F16;
    ggml_type type_v = GGML_TYPE_F16;
    std::vector<int> flash_attn = { 1, 0 }; // settings of the bare engine, of which the faster is the yardstick
    std::string mode = "exact";
    int rounds = 20;
    double level = 0.999;
};

// Stopped by Ctrl-C, it returns what is finished. Throws std::runtime_error with a message for a person.
report::Bench bench(const BenchOptions & options);

} // namespace cascade::cli
