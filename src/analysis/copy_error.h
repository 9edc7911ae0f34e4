// The paper's attention on representatives, beside the model's own: r queries against r keys, and every other token
// gets the output of the representative it is assigned to.
#pragma once

#include "cascade/attention.h"
#include "cascade/cover.h"

#include <span>

namespace cascade::analysis {

// At most `count` of `tokens`, evenly spread.
std::vector<int32_t> spread_sample(int64_t tokens, int64_t count);

// ||copied - own|| / ||own|| over the sampled tokens and all heads; `own` is the attention's output as it stands in
// memory. Token t must be row t of queries, keys and values. not_measured where a sampled token has no representative.
double copy_error(const Attention & attention, const Cover & cover, std::span<const int32_t> sample, Team & team);

} // namespace cascade::analysis
