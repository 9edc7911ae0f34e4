#include "subspace/products.h"

#include "cover/kernel.h"
#include "cover/unit_row.h"

#include <algorithm>
#include <array>
#include <cassert>

namespace cascade::subspace {

namespace {

using cover::segment;

constexpr size_t largest_tile = 1024; // values: rows x columns of any kernel

int64_t in_whole(int64_t count, int64_t parts) { return (count + parts - 1) / parts; }

void pack_rows(const MatrixView & left, int64_t first_row, int64_t first, int64_t count, int rows, float * out) {
    for (int i = 0; i < rows; i++) {
        for (int64_t k = 0; k < count; k += segment) {
            float * to = out + (k * rows) + (i * segment);
            const int64_t some = std::min<int64_t>(segment, count - k);
            if (first_row + i < left.rows) {
                std::copy_n(left.row(first_row + i) + first + k, some, to);
            } else {
                std::fill_n(to, some, 0.0F);
            }
        }
    }
}

void pack_columns(const MatrixView & left, int64_t first_column, int64_t first, int64_t count, int rows, float * out) {
    const int64_t there = std::min<int64_t>(rows, left.columns - first_column);
    for (int64_t k = 0; k < count; k++) {
        const float * from = left.row(first + k) + first_column;
        float * to = out + (k / segment * segment * rows) + (k % segment);
        for (int64_t i = 0; i < rows; i++) {
            to[i * segment] = i < there ? from[i] : 0.0F;
        }
    }
}

} // namespace

void PackedRun::pack_left(const MatrixView & left, bool transposed, int64_t first, int64_t count, Team & team) {
    const int rows = cover::kernel().rows;
    assert(count <= depth && strip % rows == 0);
    left_rows = transposed ? left.columns : left.rows;
    values = count;
    const int64_t pack_size = in_whole(count, segment) * segment * rows;
    const int64_t all = in_whole(left_rows, rows);
    packs.resize(static_cast<size_t>(all * pack_size));
    team.run(strips(), [&](int64_t s) {
        const int64_t end = std::min(all, (s + 1) * strip / rows);
        for (int64_t p = s * strip / rows; p < end; p++) {
            (transposed ? pack_columns : pack_rows)(left, p * rows, first, count, rows, packs.data() + (p * pack_size));
        }
    });
}

void PackedRun::pack_right(const MatrixView & right, int64_t first, int64_t count, Team & team) {
    const int columns = cover::kernel().columns;
    assert(count <= depth);
    right_columns = right.columns;
    values = count;
    const int64_t all = in_whole(right_columns, columns);
    panels.resize(static_cast<size_t>(all * columns * count));
    team.run(all, [&](int64_t p) {
        float * to = panels.data() + (p * columns * count);
        const int64_t there = std::min<int64_t>(columns, right_columns - (p * columns));
        for (int64_t k = 0; k < count; k++, to += columns) {
            std::copy_n(right.row(first + k) + (p * columns), there, to);
            std::fill(to + there, to + columns, 0.0F);
        }
    });
}

void PackedRun::multiply(int64_t of_strip, int64_t columns, float * out, int64_t stride) const {
    const cover::Kernel & kernel = cover::kernel();
    const int64_t pack_size = in_whole(values, segment) * segment * kernel.rows;
    const int64_t first = of_strip * strip;
    const int64_t end = std::min(left_rows, first + strip);
    alignas(64) std::array<float, largest_tile> tile;
    for (int64_t column = 0; column < columns; column += kernel.columns) {
        const float * panel = panels.data() + (column * values);
        const int64_t width = std::min<int64_t>(kernel.columns, columns - column);
        for (int64_t row = first; row < end; row += kernel.rows) {
            kernel.multiply(values, packs.data() + (row / kernel.rows * pack_size), panel, tile.data(), false);
            for (int64_t i = 0; i < std::min<int64_t>(kernel.rows, end - row); i++) {
                float * to = out + ((row - first + i) * stride) + column;
                const float * from = tile.data() + (i * kernel.columns);
                for (int64_t j = 0; j < width; j++) {
                    to[j] += from[j];
                }
            }
        }
    }
}

void multiply(const MatrixView & left, bool transposed, const MatrixView & right, float * out, Team & team) {
    const int64_t rows = transposed ? left.columns : left.rows;
    const int64_t all = transposed ? left.rows : left.columns;
    assert(all == right.rows);
    std::fill_n(out, rows * right.columns, 0.0F);
    PackedRun run;
    for (int64_t first = 0; first < all; first += PackedRun::depth) {
        const int64_t count = std::min(PackedRun::depth, all - first);
        run.pack_left(left, transposed, first, count, team);
        run.pack_right(right, first, count, team);
        team.run(run.strips(), [&](int64_t s) {
            run.multiply(s, right.columns, out + (s * PackedRun::strip * right.columns), right.columns);
        });
    }
}

} // namespace cascade::subspace
