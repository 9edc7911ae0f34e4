// A row at unit length, in an order of additions that is the same for scalars and vectors of any width: to be compiled
// for each instruction set with the same result.
#pragma once

#include <cmath>
#include <cstdint>

namespace cascade::cover {

// The factor that gives a row unit length; 0 for a row of zeros or with a value that isn't finite.
[[gnu::always_inline]] inline double unit_factor(const float * row, int64_t size) {
    constexpr int64_t chains = 16;
    double sums[chains] = {};
    const int64_t whole = size - (size % chains);
    for (int64_t k = 0; k < whole; k += chains) {
        for (int64_t i = 0; i < chains; i++) {
            const double value = row[k + i];
            sums[i] += value * value; // exact, fused or not: a product of two floats fits a double
        }
    }
    for (int64_t k = whole; k < size; k++) {
        const double value = row[k];
        sums[k - whole] += value * value;
    }
    double sum = 0.0;
    for (const double part : sums) {
        sum += part;
    }
    return std::isfinite(sum) && sum > 0.0 ? 1.0 / std::sqrt(sum) : 0.0;
}

[[gnu::always_inline]] inline void write_unit_row_inline(const float * row, int64_t size, float * out) {
    const double factor = unit_factor(row, size);
    if (factor == 0.0) {
        for (int64_t k = 0; k < size; k++) {
            out[k] = 0.0F;
        }
        return;
    }
    for (int64_t k = 0; k < size; k++) {
        out[k] = static_cast<float>(row[k] * factor);
    }
}

} // namespace cascade::cover
