// How many bytes of a model's weights a computation touches.
#pragma once

#include "llama.h"

#include <cstdint>
#include <string>
#include <vector>

namespace cascade::cli {

struct Weights {
    uint64_t dense = 0;      // touched once a batch, whatever its size
    uint64_t experts = 0;    // a token touches the share below
    double expert_share = 1; // experts used over experts
    // Of a token embedding that is not the output matrix too, a token touches one row: left out.

    // For each token of a batch: dense once for all, and at most all experts.
    double bytes_per_token(int64_t batch) const;
};

// All files of a split model, which llama.cpp names in one way.
std::vector<std::string> files_of(const llama_model * model, const std::string & path);

// From the model's file, and the others of a split one.
Weights weights_of(const llama_model * model, const std::string & path);

} // namespace cascade::cli
