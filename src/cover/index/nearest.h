// The most similar of some rows, for rows that come one at a time.
#pragma once

#include <cstdint>

namespace cascade::cover {

struct Nearest {
    int64_t row = -1;
    float product = -2.0F;
};

// The row with the largest product, the first of equal ones; row -1 where there is none.
Nearest nearest_row(const float * row, const float * rows, int64_t count, int64_t size);

} // namespace cascade::cover
