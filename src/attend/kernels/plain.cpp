// The kernel's oracle, and what machines without fused multiply-adds use.
#include "attend/kernels/kernel.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace cascade::attend {

namespace {

constexpr int rows = 4;
constexpr int columns = 8;
constexpr float hidden = -std::numeric_limits<float>::infinity();

float from_bits(uint32_t bits) {
    float value = 0.0F;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
}

float half_to_float(uint16_t half) {
    const uint32_t sign = (half & 0x8000U) << 16U;
    const uint32_t exponent = (half >> 10U) & 31U;
    const uint32_t fraction = half & 1023U;
    if (exponent == 0) {
        return std::copysign(std::ldexp(static_cast<float>(fraction), -24), from_bits(sign | 0x3F800000U));
    }
    const uint32_t wide = exponent == 31 ? 255U : exponent + 112U;
    return from_bits(sign | (wide << 23U) | (fraction << 13U));
}

float value_at(Format format, const void * stored, int64_t i) {
    if (format == Format::f32) {
        return static_cast<const float *>(stored)[i];
    }
    const uint16_t half = static_cast<const uint16_t *>(stored)[i];
    return format == Format::f16 ? half_to_float(half) : from_bits(static_cast<uint32_t>(half) << 16U);
}

void to_float(Format format, const void * stored, int64_t n, float * out) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = value_at(format, stored, i);
    }
}

void transpose(const float * rows_at, int64_t size, float * panel) {
    for (int64_t k = 0; k < size; k++) {
        for (int64_t j = 0; j < columns; j++) {
            panel[(k * columns) + j] = rows_at[(j * size) + k];
        }
    }
}

void multiply(int64_t size, const float * pack, const float * panel, float * scores) {
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < columns; j++) {
            float sum = 0.0F;
            for (int64_t k = 0; k < size; k++) {
                sum += pack[(k * rows) + i] * panel[(k * columns) + j];
            }
            scores[(i * tile_columns) + j] = sum;
        }
    }
}

float weigh_row(const ScoreTerms & terms, int64_t n, float * scores, RowSoftmax & row) {
    float largest = row.largest;
    for (int64_t j = 0; j < n; j++) {
        float & score = scores[j];
        score = terms.cap != 0.0F ? terms.cap * std::tanh(score) : score;
        score += terms.mask != nullptr ? terms.slope * terms.mask[j] : 0.0F;
        score += terms.bias != nullptr ? terms.bias[j] : 0.0F;
        largest = std::max(largest, score);
    }
    const float shift = largest == hidden ? 0.0F : largest;
    const float factor = std::exp2(row.largest - shift);
    row.sum *= factor;
    row.largest = largest;
    for (int64_t j = 0; j < n; j++) {
        scores[j] = std::exp2(scores[j] - shift);
        row.sum += scores[j];
    }
    return factor;
}

void weigh(const ScoreTerms * terms, int64_t count, int64_t n, float * scores, int64_t step, RowSoftmax * softmax,
           float * factors) {
    for (int64_t i = 0; i < count; i++) {
        factors[i] = weigh_row(terms[i], n, scores + (i * step), softmax[i]);
    }
}

void add_values(int64_t count, const float * weights, const float * values, int64_t width, const float * factors,
                float * out) {
    for (int i = 0; i < rows; i++) {
        for (int64_t k = 0; k < width; k++) {
            float sum = factors[i] * out[(i * width) + k];
            for (int64_t j = 0; j < count; j++) {
                sum += weights[(i * tile_columns) + j] * values[(j * width) + k];
            }
            out[(i * width) + k] = sum;
        }
    }
}

int64_t find_at_least(const float * limits, int64_t count, int64_t n, const float * scores, int64_t step, int32_t first,
                      int32_t * found) {
    int64_t size = 0;
    for (int64_t j = 0; j < n; j++) {
        bool wanted = false;
        for (int64_t i = 0; i < count; i++) {
            wanted = wanted || scores[(i * step) + j] >= limits[i];
        }
        if (wanted) {
            found[size++] = first + static_cast<int32_t>(j);
        }
    }
    return size;
}

Visibility visibility(Format format, const void * stored, int64_t n) {
    bool clear = true;
    bool all_hidden = true;
    for (int64_t i = 0; i < n; i++) {
        const float value = value_at(format, stored, i);
        clear = clear && value == 0.0F;
        all_hidden = all_hidden && value == hidden;
    }
    return clear ? Visibility::clear : (all_hidden ? Visibility::hidden : Visibility::mixed);
}

const char * row_at(const StoredRows & stored, int64_t token) {
    return stored.base + (static_cast<size_t>(token) * stored.stride);
}

void dot_rows(const StoredRows & stored, const TokenList & tokens, const float * queries, int64_t count,
              int64_t query_step, float * scores, int64_t score_step) {
    for (int64_t i = 0; i < count; i++) {
        for (int64_t j = 0; j < tokens.count; j++) {
            float sum = 0.0F;
            for (int64_t k = 0; k < stored.size; k++) {
                sum += queries[(i * query_step) + k] * value_at(stored.format, row_at(stored, tokens[j]), k);
            }
            scores[(i * score_step) + j] = sum;
        }
    }
}

void add_rows(const StoredRows & stored, const TokenList & tokens, const float * weights, int64_t count,
              int64_t weight_step, float * out, int64_t out_step) {
    for (int64_t i = 0; i < count; i++) {
        for (int64_t j = 0; j < tokens.count; j++) {
            for (int64_t k = 0; k < stored.size; k++) {
                out[(i * out_step) + k] +=
                    weights[(i * weight_step) + j] * value_at(stored.format, row_at(stored, tokens[j]), k);
            }
        }
    }
}

} // namespace

const Kernel plain_kernel = { "plain", rows,       columns,       to_float,   transpose, multiply,
                              weigh,   add_values, find_at_least, visibility, dot_rows,  add_rows };

} // namespace cascade::attend
