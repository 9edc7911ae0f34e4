// The pieces of attention that are written for instruction sets. Everything else in this folder is plain C++ on top.
//
// Logits are in powers of two here: queries are scaled with log2(e), and a weight is 2^(logit - largest).
// Query rows stand in packs of `rows`: value k of row i at [k * rows + i]. Keys stand in panels of `columns`: value k
// of column j at [k * columns + j]. Rows that aren't there are zeros, and so are their scores, which count as weights.
#pragma once

#include "cascade/attention.h"

#include <cstdint>

namespace cascade::attend {

constexpr float log2_e = 1.44269504F;

// Columns between two looks at the softmax; a multiple of every kernel's `columns`.
constexpr int64_t tile_columns = 128;

// Floats that a row of values or of a small query block is padded to; a multiple of every kernel's lanes.
constexpr int64_t row_padding = 16;

constexpr int64_t round_up(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// Token numbers: a list, or a range where there is none.
struct TokenList {
    const int32_t * list = nullptr;
    int64_t first = 0;
    int64_t count = 0;

    int64_t operator[](int64_t i) const { return list != nullptr ? list[i] : first + i; }
    TokenList part(int64_t from, int64_t n) const {
        return { list != nullptr ? list + from : nullptr, first + from, n };
    }
};

// Packed rows of one head, in any format but `other`.
struct StoredRows {
    const char * base = nullptr;
    size_t stride = 0;
    Format format = Format::f32;
    int64_t size = 0;
};

// What becomes of a row's scores before the softmax; all in powers of two.
struct ScoreTerms {
    float cap = 0.0F;             // score = cap * tanh(score); 0: as it is
    const float * mask = nullptr; // slope * mask is added
    float slope = 1.0F;
    const float * bias = nullptr; // added
};

// A row's softmax so far.
struct RowSoftmax {
    float largest;
    float sum;
};

enum class Visibility : uint8_t { hidden, mixed, clear };

struct Kernel {
    const char * name = nullptr;
    int rows = 0;
    int columns = 0;

    // Packed values of any format but `other`.
    void (*to_float)(Format format, const void * stored, int64_t n, float * out);

    // A panel from `columns` rows of `size` floats.
    void (*transpose)(const float * rows, int64_t size, float * panel);

    // scores[rows x columns] = pack x panel over `size` values; rows of scores are tile_columns apart.
    void (*multiply)(int64_t size, const float * pack, const float * panel, float * scores);

    // Scores of `count` rows, `step` apart, become weights; n is a multiple of `columns`. Writes the factors for what
    // was summed up before.
    void (*weigh)(const ScoreTerms * terms, int64_t count, int64_t n, float * scores, int64_t step, RowSoftmax * rows,
                  float * factors);

    // out[i] = factors[i] * out[i] + sum of weights[i][j] * values[j], for a pack's rows; `width` is a multiple of
    // row_padding, rows of weights are tile_columns apart.
    void (*add_values)(int64_t columns, const float * weights, const float * values, int64_t width,
                       const float * factors, float * out);

    // Numbers, from `first` on, of those of n columns whose score is at least limits[i] in some row i, in order. n is a
    // multiple of row_padding, `found` has room for n more and row_padding. Returns how many.
    int64_t (*find_at_least)(const float * limits, int64_t count, int64_t n, const float * scores, int64_t step,
                             int32_t first, int32_t * found);

    // Whether n packed mask values are all zero, all -inf, or anything else.
    Visibility (*visibility)(Format format, const void * stored, int64_t n);

    // scores[i * score_step + j] = <query i, row tokens[j]>; queries are padded with zeros to row_padding.
    void (*dot_rows)(const StoredRows & rows, const TokenList & tokens, const float * queries, int64_t count,
                     int64_t query_step, float * scores, int64_t score_step);

    // out[i * out_step …] += weights[i * weight_step + j] * row tokens[j].
    void (*add_rows)(const StoredRows & rows, const TokenList & tokens, const float * weights, int64_t count,
                     int64_t weight_step, float * out, int64_t out_step);
};

// The one of the instruction set in use (cascade/cover.h: isa_in_use).
const Kernel & kernel();

extern const Kernel plain_kernel;

constexpr size_t format_bytes(Format format) { return format == Format::f32 ? 4 : 2; }

} // namespace cascade::attend
