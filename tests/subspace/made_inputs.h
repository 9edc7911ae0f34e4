// Rows for tests, with a spectrum of their own, and plain statements in doubles.
#pragma once

#include "subspace/second_moments.h"

#include <cmath>
#include <random>
#include <vector>

namespace cascade::subspace::test {

struct Rows {
    int64_t count;
    int64_t width;
    std::vector<float> values;

    MatrixView view() const { return { values.data(), count, width, width }; }
};

inline Rows noise(int64_t count, int64_t width, uint32_t seed) {
    std::mt19937 numbers(seed);
    std::normal_distribution<float> normal;
    Rows rows{ count, width, std::vector<float>(static_cast<size_t>(count * width)) };
    for (float & value : rows.values) {
        value = normal(numbers);
    }
    return rows;
}

// Sums of `directions` fixed random directions, the i-th with size `decay`^i, and noise of a size.
inline Rows inputs(int64_t count, int64_t width, int64_t directions, float decay, float noise_size, uint32_t seed) {
    const Rows along = noise(directions, width, 1234);
    const Rows amounts = noise(count, directions, seed);
    Rows rows = noise(count, width, seed + 1);
    for (int64_t t = 0; t < count; t++) {
        float * row = rows.values.data() + (t * width);
        for (int64_t i = 0; i < width; i++) {
            row[i] *= noise_size;
        }
        float size = 1.0F;
        for (int64_t k = 0; k < directions; k++, size *= decay) {
            const float amount = size * amounts.values[static_cast<size_t>((t * directions) + k)];
            for (int64_t i = 0; i < width; i++) {
                row[i] += amount * along.values[static_cast<size_t>((k * width) + i)];
            }
        }
    }
    return rows;
}

inline SecondMoments moments_of(const Rows & rows, Team & team) {
    SecondMoments moments(rows.width);
    PackedRun scratch;
    moments.add(rows.view(), scratch, team);
    return moments;
}

} // namespace cascade::subspace::test
