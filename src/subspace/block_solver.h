// Leading eigenvectors of a wide symmetric matrix by blocks (basis.h says how).
#pragma once

#include "cascade/team.h"
#include "subspace/second_moments.h"

#include <cstdint>
#include <vector>

namespace cascade::subspace {

struct Block {
    std::vector<double> values; // largest first
    std::vector<float> vectors; // one row each, `wanted` of them
};

// The first `wanted` of a block of `size`, which is larger by a few.
Block leading_block(const SecondMoments & moments, int64_t size, int64_t wanted, Team & team);

} // namespace cascade::subspace
