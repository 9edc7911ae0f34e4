// Products of matrices of floats by the kernel of covers: packed once, multiplied on all threads, and the same bits on
// every instruction set and with any number of threads, so that a calibration can be repeated.
//
// Matrices stand in rows. An entry of a product is summed in order over runs of `depth` values; the runs' sums are
// added one after the other.
#pragma once

#include "cascade/team.h"

#include <cstdint>
#include <vector>

namespace cascade::subspace {

struct MatrixView {
    const float * data = nullptr;
    int64_t rows = 0;
    int64_t columns = 0;
    int64_t stride = 0; // values from a row to the next

    const float * row(int64_t i) const { return data + (i * stride); }
};

// One run of a product's depth, packed: the left factor's rows and the right factor's columns.
class PackedRun {
  public:
    static constexpr int64_t depth = 512;
    // Rows that are multiplied together; a multiple of every kernel's rows.
    static constexpr int64_t strip = 96;

    // Rows of `left`, values `first` to first + `count` of each; or where `transposed`, columns of `left`, and its rows
    // `first` to first + `count`.
    void pack_left(const MatrixView & left, bool transposed, int64_t first, int64_t count, Team & team);
    // Rows `first` to first + `count` of `right`.
    void pack_right(const MatrixView & right, int64_t first, int64_t count, Team & team);

    int64_t strips() const { return (left_rows + strip - 1) / strip; }

    // Adds the product of a strip's rows with the first `columns` columns to `out`, whose first row is the strip's.
    void multiply(int64_t of_strip, int64_t columns, float * out, int64_t stride) const;

  private:
    int64_t left_rows = 0;
    int64_t right_columns = 0;
    int64_t values = 0;
    std::vector<float> packs;
    std::vector<float> panels;
};

// out = left right, or left^T right where `transposed`. `out` is as dense as its columns.
void multiply(const MatrixView & left, bool transposed, const MatrixView & right, float * out, Team & team);

} // namespace cascade::subspace
