// Tiles of many query rows and many columns; included once for each instruction set.
#if defined(CASCADE_TILE_OPS) == defined(HWY_TARGET_TOGGLE)
#ifdef CASCADE_TILE_OPS
#undef CASCADE_TILE_OPS
#else
#define CASCADE_TILE_OPS
#endif

#include "attend/kernels/kernel.h"

#include <algorithm>
#include <hwy/highway.h>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace cascade::attend::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr hn::ScalableTag<float> tag;
constexpr hn::RebindToSigned<decltype(tag)> int_tag;
using Vector = hn::Vec<decltype(tag)>;
constexpr int lanes = static_cast<int>(HWY_LANES(float));

// As many sums as the registers hold beside a row's value and the columns': 32 registers, or 16 with AVX2.
constexpr int rows = HWY_TARGET == HWY_AVX2 ? 6 : 12;
constexpr int columns = 2 * lanes;

HWY_ATTR void multiply(int64_t size, const float * HWY_RESTRICT pack, const float * HWY_RESTRICT panel,
                       float * HWY_RESTRICT scores) {
    Vector sums[rows][2];
    for (auto & sum : sums) {
        sum[0] = sum[1] = hn::Zero(tag);
    }
    for (int64_t k = 0; k < size; k++, pack += rows, panel += columns) {
        const auto left = hn::LoadU(tag, panel);
        const auto right = hn::LoadU(tag, panel + lanes);
#pragma GCC unroll 12
        for (int i = 0; i < rows; i++) {
            const auto value = hn::Set(tag, pack[i]);
            sums[i][0] = hn::MulAdd(value, left, sums[i][0]);
            sums[i][1] = hn::MulAdd(value, right, sums[i][1]);
        }
    }
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++) {
        hn::StoreU(sums[i][0], tag, scores + (i * tile_columns));
        hn::StoreU(sums[i][1], tag, scores + (i * tile_columns) + lanes);
    }
}

// Four values of each of lanes / 4 rows: block b from row 4 * b.
HWY_INLINE Vector load_blocks(const float * HWY_RESTRICT at, int64_t size) {
    const hn::FixedTag<float, 4> four;
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET <= HWY_AVX3
    const hn::FixedTag<float, 8> eight;
    const auto low = hn::Combine(eight, hn::LoadU(four, at + (4 * size)), hn::LoadU(four, at));
#if HWY_TARGET == HWY_AVX2
    return low;
#else
    return hn::Combine(tag, hn::Combine(eight, hn::LoadU(four, at + (12 * size)), hn::LoadU(four, at + (8 * size))),
                       low);
#endif
#else
    (void)size;
    return hn::LoadU(four, at);
#endif
}

// Four values of `lanes` rows, turned round inside each block.
HWY_INLINE void transpose_four(const float * HWY_RESTRICT rows_at, int64_t size, float * HWY_RESTRICT panel) {
    const hn::Repartition<double, decltype(tag)> pairs;
    const auto a = load_blocks(rows_at, size);
    const auto b = load_blocks(rows_at + size, size);
    const auto c = load_blocks(rows_at + (2 * size), size);
    const auto d = load_blocks(rows_at + (3 * size), size);
    const auto ab = hn::BitCast(pairs, hn::InterleaveLower(tag, a, b));
    const auto cd = hn::BitCast(pairs, hn::InterleaveLower(tag, c, d));
    const auto ab_high = hn::BitCast(pairs, hn::InterleaveUpper(tag, a, b));
    const auto cd_high = hn::BitCast(pairs, hn::InterleaveUpper(tag, c, d));
    hn::StoreU(hn::BitCast(tag, hn::InterleaveLower(pairs, ab, cd)), tag, panel);
    hn::StoreU(hn::BitCast(tag, hn::InterleaveUpper(pairs, ab, cd)), tag, panel + columns);
    hn::StoreU(hn::BitCast(tag, hn::InterleaveLower(pairs, ab_high, cd_high)), tag, panel + (2 * columns));
    hn::StoreU(hn::BitCast(tag, hn::InterleaveUpper(pairs, ab_high, cd_high)), tag, panel + (3 * columns));
}

HWY_ATTR void transpose(const float * HWY_RESTRICT rows_at, int64_t size, float * HWY_RESTRICT panel) {
    int64_t k = 0;
    for (; k + 4 <= size; k += 4) {
        transpose_four(rows_at + k, size, panel + (k * columns));
        transpose_four(rows_at + (lanes * size) + k, size, panel + (k * columns) + lanes);
    }
    for (; k < size; k++) {
        for (int64_t j = 0; j < columns; j++) {
            panel[(k * columns) + j] = rows_at[(j * size) + k];
        }
    }
}

template <int vectors>
HWY_INLINE void add_values_of(int64_t count, const float * HWY_RESTRICT weights, const float * HWY_RESTRICT values,
                              int64_t width, const float * HWY_RESTRICT factors, float * HWY_RESTRICT out) {
    Vector sums[rows][vectors];
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++) {
        for (int v = 0; v < vectors; v++) {
            sums[i][v] = hn::Mul(hn::Set(tag, factors[i]), hn::LoadU(tag, out + (i * width) + (v * lanes)));
        }
    }
    for (int64_t k = 0; k < count; k++, weights++, values += width) {
        Vector value[vectors];
        for (int v = 0; v < vectors; v++) {
            value[v] = hn::LoadU(tag, values + (v * lanes));
        }
#pragma GCC unroll 12
        for (int i = 0; i < rows; i++) {
            const auto weight = hn::Set(tag, weights[i * tile_columns]);
            for (int v = 0; v < vectors; v++) {
                sums[i][v] = hn::MulAdd(weight, value[v], sums[i][v]);
            }
        }
    }
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++) {
        for (int v = 0; v < vectors; v++) {
            hn::StoreU(sums[i][v], tag, out + (i * width) + (v * lanes));
        }
    }
}

HWY_ATTR void add_values(int64_t count, const float * HWY_RESTRICT weights, const float * HWY_RESTRICT values,
                         int64_t width, const float * HWY_RESTRICT factors, float * HWY_RESTRICT out) {
    int64_t i = 0;
    for (; i + columns <= width; i += columns) {
        add_values_of<2>(count, weights, values + i, width, factors, out + i);
    }
    for (; i < width; i += lanes) {
        add_values_of<1>(count, weights, values + i, width, factors, out + i);
    }
}

// 2^x for x that isn't far above 0, within two roundings; 0 below 2^-125, so that no product is subnormal.
HWY_INLINE Vector power_of_two(Vector x) {
    const auto rounder = hn::Set(tag, 12582912.0F); // 1.5 * 2^23: a sum has the whole number in its last bits
    const auto rounded = hn::Add(x, rounder);
    const auto f = hn::Sub(x, hn::Sub(rounded, rounder));
    auto y = hn::Set(tag, 1.535336188319500e-4F);
    y = hn::MulAdd(y, f, hn::Set(tag, 1.339887440266574e-3F));
    y = hn::MulAdd(y, f, hn::Set(tag, 9.618437357674640e-3F));
    y = hn::MulAdd(y, f, hn::Set(tag, 5.550332471162809e-2F));
    y = hn::MulAdd(y, f, hn::Set(tag, 2.402264791363012e-1F));
    y = hn::MulAdd(y, f, hn::Set(tag, 6.931472028550421e-1F));
    y = hn::MulAdd(y, f, hn::Set(tag, 1.0F));
    const auto exponent = hn::ShiftLeft<23>(hn::BitCast(int_tag, rounded));
    const auto power = hn::BitCast(tag, hn::Add(hn::BitCast(int_tag, y), exponent));
    return hn::IfThenZeroElse(hn::Lt(x, hn::Set(tag, -125.0F)), power); // what isn't a number stays that
}

HWY_INLINE Vector capped(Vector x, float cap) {
    const auto power = power_of_two(hn::Mul(hn::Abs(x), hn::Set(tag, -2.0F * log2_e)));
    const auto one = hn::Set(tag, 1.0F);
    const auto tanh = hn::Div(hn::Sub(one, power), hn::Add(one, power));
    return hn::Mul(hn::Set(tag, cap), hn::CopySign(tanh, x));
}

template <bool capping, bool masked, bool biased>
HWY_INLINE Vector add_terms(const ScoreTerms & terms, int64_t n, float * HWY_RESTRICT scores) {
    const auto slope = hn::Set(tag, terms.slope);
    auto largest = hn::Set(tag, -std::numeric_limits<float>::infinity());
    for (int64_t j = 0; j < n; j += lanes) {
        auto score = hn::LoadU(tag, scores + j);
        score = capping ? capped(score, terms.cap) : score;
        score = masked ? hn::MulAdd(slope, hn::LoadU(tag, terms.mask + j), score) : score;
        score = biased ? hn::Add(score, hn::LoadU(tag, terms.bias + j)) : score;
        if (capping || masked || biased) {
            hn::StoreU(score, tag, scores + j);
        }
        largest = hn::Max(largest, score);
    }
    return largest;
}

HWY_INLINE Vector largest_score(const ScoreTerms & terms, int64_t n, float * HWY_RESTRICT scores) {
    if (HWY_UNLIKELY(terms.cap != 0.0F)) {
        if (terms.mask != nullptr) {
            return terms.bias != nullptr ? add_terms<true, true, true>(terms, n, scores)
                                         : add_terms<true, true, false>(terms, n, scores);
        }
        return terms.bias != nullptr ? add_terms<true, false, true>(terms, n, scores)
                                     : add_terms<true, false, false>(terms, n, scores);
    }
    if (terms.mask != nullptr) {
        return terms.bias != nullptr ? add_terms<false, true, true>(terms, n, scores)
                                     : add_terms<false, true, false>(terms, n, scores);
    }
    return terms.bias != nullptr ? add_terms<false, false, true>(terms, n, scores)
                                 : add_terms<false, false, false>(terms, n, scores);
}

HWY_INLINE Vector weigh_row(float largest, int64_t n, float * HWY_RESTRICT scores) {
    const auto shift = hn::Set(tag, largest);
    auto even = hn::Zero(tag);
    auto odd = hn::Zero(tag);
    for (int64_t j = 0; j < n; j += columns) {
        const auto left = power_of_two(hn::Sub(hn::LoadU(tag, scores + j), shift));
        const auto right = power_of_two(hn::Sub(hn::LoadU(tag, scores + j + lanes), shift));
        even = hn::Add(even, left);
        odd = hn::Add(odd, right);
        hn::StoreU(left, tag, scores + j);
        hn::StoreU(right, tag, scores + j + lanes);
    }
    return hn::Add(even, odd);
}

constexpr int rows_weighed = 16; // together, so that a row's maximum and sum don't keep the next one waiting

HWY_INLINE void weigh_some(const ScoreTerms * terms, int count, int64_t n, float * HWY_RESTRICT scores, int64_t step,
                           RowSoftmax * HWY_RESTRICT softmax, float * HWY_RESTRICT factors) {
    alignas(64) float shifts[rows_weighed] = {};
    alignas(64) float changes[rows_weighed] = {};
    for (int i = 0; i < count; i++) {
        const float largest = hn::GetLane(hn::MaxOfLanes(tag, largest_score(terms[i], n, scores + (i * step))));
        const float before = softmax[i].largest;
        softmax[i].largest = largest > before ? largest : before;
        shifts[i] = std::max(softmax[i].largest, -std::numeric_limits<float>::max()); // where nothing is visible
        changes[i] = before - shifts[i];
    }
    for (int i = 0; i < rows_weighed; i += lanes) {
        hn::Store(power_of_two(hn::Load(tag, changes + i)), tag, changes + i);
    }
    for (int i = 0; i < count; i++) {
        const float sum = hn::GetLane(hn::SumOfLanes(tag, weigh_row(shifts[i], n, scores + (i * step))));
        softmax[i].sum = (softmax[i].sum * changes[i]) + sum;
        factors[i] = changes[i];
    }
}

HWY_ATTR void weigh(const ScoreTerms * terms, int64_t count, int64_t n, float * HWY_RESTRICT scores, int64_t step,
                    RowSoftmax * HWY_RESTRICT softmax, float * HWY_RESTRICT factors) {
    for (int64_t i = 0; i < count; i += rows_weighed) {
        weigh_some(terms + i, static_cast<int>(std::min<int64_t>(rows_weighed, count - i)), n, scores + (i * step),
                   step, softmax + i, factors + i);
    }
}

HWY_ATTR int64_t find_at_least(const float * HWY_RESTRICT limits, int64_t count, int64_t n,
                               const float * HWY_RESTRICT scores, int64_t step, int32_t first,
                               int32_t * HWY_RESTRICT found) {
    const auto numbers = hn::Iota(int_tag, first);
    int64_t size = 0;
    for (int64_t j = 0; j < n; j += lanes) {
        auto wanted = hn::Ge(hn::LoadU(tag, scores + j), hn::Set(tag, limits[0]));
        for (int64_t i = 1; i < count; i++) {
            const auto score = hn::LoadU(tag, scores + (i * step) + j);
            wanted = hn::Or(wanted, hn::Ge(score, hn::Set(tag, limits[i])));
        }
        if (!hn::AllFalse(tag, wanted)) {
            const auto here = hn::Add(numbers, hn::Set(int_tag, static_cast<int32_t>(j)));
            size +=
                static_cast<int64_t>(hn::CompressStore(here, hn::RebindMask(int_tag, wanted), int_tag, found + size));
        }
    }
    return size;
}

} // namespace cascade::attend::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
