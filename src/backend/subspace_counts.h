// What linear maps read of their weights in mode gated.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace cascade::backend {

// Of one kind of input ("attn_q": named after the first map that reads it), summed over layers.
struct SubspaceCounts {
    int64_t tokens = 0;
    int64_t passed = 0;
    int64_t rough = 0;         // for which the rough copies did
    double weight_bytes = 0.0; // that the maps alone would have read, a token at a time
    double bytes = 0.0;        // that were read, counted alike
};
using SubspaceTotals = std::map<std::string, SubspaceCounts>;

} // namespace cascade::backend
