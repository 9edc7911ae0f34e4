// The one piece of covers that is written for instruction sets: products of packed rows and columns.
//
// Columns stand in panels of `columns` unit rows: value k of column j at [k * columns + j]. Rows stand in packs of
// `rows`: value k of row i at [k * rows + i]. Missing rows and columns of the last pack or panel are zeros.
// Every product sums its values in order, with fused multiply-adds in float: all kernels give the same bits.
#pragma once

#include "cascade/cover.h"

#include <cstdint>

namespace cascade::cover {

struct Best {
    float similarity = -2.0F; // below that of any pair
    int32_t column = -1;
};

struct Kernel {
    const char * name;
    int rows;
    int columns;

    // The row at unit length; zeros for a row of zeros or with a value that isn't finite.
    void (*write_unit_row)(const float * row, int64_t size, float * out);

    // out[rows x columns] = pack x panel over `values` values; added to what is there where `add` is set.
    void (*multiply)(int64_t values, const float * pack, const float * panel, float * out, bool add);

    // For one row of products with columns first … first + count - 1: takes over the largest where it is larger than
    // `best`; of equal ones the first.
    void (*take_best)(const float * products, int count, int32_t first, Sign sign, Best & best);

    // Products of `count` pairs of unit rows.
    void (*multiply_pairs)(int64_t values, const float * const * a, const float * const * b, int count, float * out);
};

const Kernel & kernel();

} // namespace cascade::cover
