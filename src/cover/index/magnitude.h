// The largest magnitude of some floats, by their bits: as whole numbers they are in the same order, and whatever isn't
// finite comes last. So a compiler can look at many at once.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

namespace cascade::cover {

// Infinity where a value isn't finite.
inline float largest_magnitude(const float * values, int64_t size) {
    constexpr int32_t without_sign = 0x7FFFFFFF;
    int32_t largest = 0;
    for (int64_t i = 0; i < size; i++) {
        largest = std::max(largest, std::bit_cast<int32_t>(values[i]) & without_sign);
    }
    constexpr float infinity = std::numeric_limits<float>::infinity();
    return largest < std::bit_cast<int32_t>(infinity) ? std::bit_cast<float>(largest) : infinity;
}

inline bool all_finite(const float * values, int64_t size) {
    return largest_magnitude(values, size) < std::numeric_limits<float>::infinity();
}

// The nearest whole number, the even one of two; for magnitudes below 2^22.
inline float to_whole(float value) {
    constexpr float shift = 12582912.0F; // 1.5 * 2^23: a sum has no digits behind the point
    return (value + shift) - shift;
}

} // namespace cascade::cover
