// The oracle of past_shares: the same question, answered from the definition, in double and on one thread.
#pragma once

#include "attend/method.h"

#include <cstdint>
#include <span>
#include <vector>

namespace cascade {

std::vector<float> past_shares_plain(const Block & block, const float * past_keys, std::span<const int64_t> rows,
                                     Rank rank);

} // namespace cascade
