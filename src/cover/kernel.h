// The one piece of covers that is written for instruction sets: products of packed rows and columns.
//
// Columns stand in panels of `columns` unit rows: value k of column j at [k * columns + j]. Rows stand in packs of
// `rows`, in segments of 16 values: value k of row i at [(k / 16) * 16 * rows + i * 16 + k % 16], so that packing moves
// whole vectors. Missing rows of the last pack and missing
// columns of the last panel are anything finite.
// Every product sums its values in order, with fused multiply-adds in float: all kernels give the same bits.
#pragma once

#include "cascade/cover.h"

#include <cmath>
#include <cstdint>

namespace cascade::cover {

struct Best {
    float similarity = -2.0F; // below that of any pair
    int32_t column = -1;
};

constexpr int pairs_together = 8;

struct Kernel {
    const char * name;
    int rows;
    int columns;

    // The row at unit length; zeros for a row of zeros or with a value that isn't finite.
    // In segments that begin `step` floats apart (see unit_row.h).
    void (*write_unit_row)(const float * row, int64_t size, float * out, int64_t step);

    // out[rows x columns] = pack x panel over `values` values; added to what is there where `add` is set. Both begin
    // at a segment.
    void (*multiply)(int64_t values, const float * pack, const float * panel, float * out, bool add);

    // For `count` rows of products with a whole panel, whose columns are first, first + 1, …: takes over a row's
    // largest where it is larger than its best; of equal ones the first.
    void (*take_best)(const float * products, int64_t count, int32_t first, Sign sign, Best * best);

    // Products of pairs_together pairs: unit rows a, a + size, …, each with its own b.
    void (*multiply_pairs)(int64_t size, const float * a, const float * const * b, float * out);
};

const Kernel & kernel();

inline float similarity_of(float product, Sign sign) { return sign == Sign::kept ? product : std::fabs(product); }

// take_best for a single product.
inline void take_better(float product, int32_t column, Sign sign, Best & best) {
    const float similarity = similarity_of(product, sign);
    if (similarity > best.similarity) {
        best = { similarity, column };
    }
}

} // namespace cascade::cover
