// Queries that see nearly the same tokens, found by the mask alone.
#pragma once

#include "cascade/attention.h"
#include "cover/index/cells.h"

#include <vector>

namespace cascade::attend {

struct QueryRun {
    int64_t stream = 0;
    int64_t first = 0;
    int64_t count = 0;
    std::vector<uint8_t> by_all; // for each token, 0 or 1 (cover::Seen)
    std::vector<uint8_t> by_some;

    cover::Seen seen() const { return { by_all, by_some }; }
};

// Neighbouring queries whose visible tokens differ by a few belong together: those of one sequence. `runs` is written
// over, its memory used again. The mask must be packed f16 or f32, the same for all heads.
void find_query_runs(const Attention & attention, std::vector<QueryRun> & runs);

// Whether find_query_runs can read the mask.
bool has_plain_mask(const Attention & attention);

// The mask's value for one query and token.
float mask_value(const Attention & attention, int64_t stream, int64_t query, int64_t token);

} // namespace cascade::attend
