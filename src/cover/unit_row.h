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

// Values stand in segments: value k at out[(k / segment) * step + k % segment]. step == segment: one after the other.
constexpr int64_t segment = 16;

template <typename Scale>
[[gnu::always_inline]] inline void write_segments(const float * row, int64_t size, float * out, int64_t step,
                                                  const Scale & scale) {
    const int64_t whole = size - (size % segment);
    for (int64_t k = 0; k < whole; k += segment, out += step) {
        for (int64_t i = 0; i < segment; i++) {
            out[i] = scale(row[k + i]);
        }
    }
    for (int64_t k = whole; k < size; k++) {
        out[k - whole] = scale(row[k]);
    }
}

[[gnu::always_inline]] inline void write_unit_row_inline(const float * row, int64_t size, float * out, int64_t step) {
    const double factor = unit_factor(row, size);
    const auto in_float = static_cast<float>(factor);
    if (factor == 0.0) {
        write_segments(row, size, out, step, [](float) { return 0.0F; });
    } else if (in_float > 1e-30F && in_float < 1e30F) {
        write_segments(row, size, out, step, [in_float](float value) { return value * in_float; });
    } else { // tiny and huge rows, whose factor a float doesn't hold
        write_segments(row, size, out, step, [factor](float value) { return static_cast<float>(value * factor); });
    }
}

} // namespace cascade::cover
