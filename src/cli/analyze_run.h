// The work behind `cascade analyze`: windows of text through the model, each source's chains of covers beside it.
#pragma once

#include "analysis/figures.h"
#include "cascade/cover.h"
#include "cli/activations.h"

#include <functional>
#include <string>
#include <vector>

namespace cascade::cli {

struct AnalyzeOptions {
    std::string model;
    std::string text;
    std::vector<int64_t> lengths = { 512 };
    std::vector<double> taus = { 0.30 };
    std::vector<Source> sources = { Source::residual };
    std::vector<analysis::Method> methods;
    Sign sign = Sign::ignored;
    bool per_head = false; // keys and values: a cover for each KV head
    int64_t windows = 1;
    int64_t copy_samples = 64; // tokens of a window whose copied attention is compared; 0: none
    uint64_t seed = 1;
    int threads = 0;
    bool timing = false; // the first window of each length also without us
    bool resume = false;
};

struct Analyzed {
    std::vector<analysis::Window> windows;
    std::string architecture;
    int layers = 0;
    int64_t wanted = 0;  // windows of all lengths
    std::string kept_in; // the file of finished windows, to be removed when all is written
    bool complete() const { return static_cast<int64_t>(windows.size()) == wanted; }
};

const char * source_name(Source source);

// Throws std::runtime_error with a message for a person. An interrupt leaves what is done.
Analyzed analyze(const AnalyzeOptions & options);

} // namespace cascade::cli
