// Stored rows as they are, for few query rows; included once for each instruction set.
#if defined(CASCADE_ROW_OPS) == defined(HWY_TARGET_TOGGLE)
#ifdef CASCADE_ROW_OPS
#undef CASCADE_ROW_OPS
#else
#define CASCADE_ROW_OPS
#endif

#include "attend/kernels/kernel.h"
#include "attend/kernels/tile_ops_inl.h"

#include <algorithm>
#include <cstring>
#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace cascade::attend::HWY_NAMESPACE {

struct StoredF32 {
    using Value = float;
    static HWY_INLINE Vector load(const float * at) { return hn::LoadU(tag, at); }
};

struct StoredF16 {
    using Value = hwy::float16_t;
    static HWY_INLINE Vector load(const Value * at) {
        const hn::Rebind<hwy::float16_t, decltype(tag)> half;
        return hn::PromoteTo(tag, hn::LoadU(half, at));
    }
};

struct StoredBf16 {
    using Value = uint16_t;
    static HWY_INLINE Vector load(const Value * at) {
        const hn::Rebind<uint16_t, decltype(tag)> half;
        const hn::RebindToUnsigned<decltype(tag)> whole;
        return hn::BitCast(tag, hn::ShiftLeft<16>(hn::PromoteTo(whole, hn::LoadU(half, at))));
    }
};

// The last values of a row, fewer than a vector's.
template <class Stored>
HWY_INLINE Vector load_rest(const typename Stored::Value * at, int64_t n) {
    alignas(64) typename Stored::Value rest[lanes] = {};
    std::memcpy(static_cast<void *>(rest), static_cast<const void *>(at), static_cast<size_t>(n) * sizeof(*at));
    return Stored::load(rest);
}

template <class Stored>
HWY_INLINE const typename Stored::Value * row_of(const StoredRows & stored, int64_t token) {
    return reinterpret_cast<const typename Stored::Value *>(stored.base + (static_cast<size_t>(token) * stored.stride));
}

template <class Stored>
HWY_INLINE void convert(const void * stored, int64_t n, float * HWY_RESTRICT out) {
    const auto * at = static_cast<const typename Stored::Value *>(stored);
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        hn::StoreU(Stored::load(at + i), tag, out + i);
    }
    if (i < n) {
        alignas(64) float rest[lanes];
        hn::Store(load_rest<Stored>(at + i, n - i), tag, rest);
        std::copy_n(rest, n - i, out + i);
    }
}

HWY_ATTR void to_float(Format format, const void * stored, int64_t n, float * HWY_RESTRICT out) {
    switch (format) {
    case Format::f16:
        return convert<StoredF16>(stored, n, out);
    case Format::bf16:
        return convert<StoredBf16>(stored, n, out);
    default:
        return convert<StoredF32>(stored, n, out);
    }
}

// Of equal words only: zeros, or all of them `hidden`.
template <class Word>
HWY_INLINE Visibility compare_words(const Word * HWY_RESTRICT words, int64_t n, Word hidden) {
    const hn::ScalableTag<Word> word_tag;
    const auto step = static_cast<int64_t>(hn::Lanes(word_tag));
    auto any = hn::Zero(word_tag);
    auto all = hn::Set(word_tag, hidden);
    int64_t i = 0;
    for (; i + step <= n; i += step) {
        const auto word = hn::LoadU(word_tag, words + i);
        any = hn::Or(any, word);
        all = hn::And(all, word);
    }
    Word rest_any = 0;
    Word rest_all = hidden;
    for (; i < n; i++) {
        rest_any |= words[i];
        rest_all &= words[i];
    }
    any = hn::Or(any, hn::Set(word_tag, rest_any));
    all = hn::And(all, hn::Set(word_tag, rest_all));
    if (hn::AllTrue(word_tag, hn::Eq(any, hn::Zero(word_tag)))) {
        return Visibility::clear;
    }
    const auto same = hn::And(hn::Eq(hn::Or(any, hn::Set(word_tag, hidden)), hn::Set(word_tag, hidden)),
                              hn::Eq(all, hn::Set(word_tag, hidden)));
    return hn::AllTrue(word_tag, same) ? Visibility::hidden : Visibility::mixed;
}

HWY_ATTR Visibility visibility(Format format, const void * stored, int64_t n) {
    switch (format) {
    case Format::f16:
        return compare_words(static_cast<const uint16_t *>(stored), n, uint16_t(0xFC00));
    case Format::bf16:
        return compare_words(static_cast<const uint16_t *>(stored), n, uint16_t(0xFF80));
    default:
        return compare_words(static_cast<const uint32_t *>(stored), n, uint32_t(0xFF800000));
    }
}

constexpr int tokens_together = 4;
constexpr int rows_together = HWY_TARGET == HWY_AVX2 ? 3 : 4;
constexpr int64_t tokens_ahead = 16; // rows are fetched so long before they are needed

// A list's rows stand anywhere: the hardware doesn't guess the next one.
HWY_INLINE void fetch(const StoredRows & stored, const TokenList & tokens, int64_t j) {
    if (j < tokens.count) {
        const char * row = stored.base + (static_cast<size_t>(tokens[j]) * stored.stride);
        const size_t bytes = static_cast<size_t>(stored.size) * format_bytes(stored.format);
        for (size_t i = 0; i < bytes; i += 64) {
            hwy::Prefetch(row + i);
        }
    }
}

// The sums of four vectors' lanes, side by side.
HWY_INLINE void store_sums(Vector a, Vector b, Vector c, Vector d, float * HWY_RESTRICT out) {
    const hn::Repartition<double, decltype(tag)> pairs;
    const auto ab = hn::Add(hn::InterleaveLower(tag, a, b), hn::InterleaveUpper(tag, a, b));
    const auto cd = hn::Add(hn::InterleaveLower(tag, c, d), hn::InterleaveUpper(tag, c, d));
    const auto low = hn::InterleaveLower(pairs, hn::BitCast(pairs, ab), hn::BitCast(pairs, cd));
    const auto high = hn::InterleaveUpper(pairs, hn::BitCast(pairs, ab), hn::BitCast(pairs, cd));
    const auto abcd = hn::Add(hn::BitCast(tag, low), hn::BitCast(tag, high)); // in each block of four lanes
    const hn::FixedTag<float, 4> four;
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET <= HWY_AVX3
    const hn::FixedTag<float, 8> eight;
#if HWY_TARGET == HWY_AVX2
    const auto half = abcd;
#else
    const auto half = hn::Add(hn::LowerHalf(eight, abcd), hn::UpperHalf(eight, abcd));
#endif
    hn::StoreU(hn::Add(hn::LowerHalf(four, half), hn::UpperHalf(four, half)), four, out);
#else
    hn::StoreU(abcd, four, out);
#endif
}

template <class Stored, int count>
HWY_INLINE void dot_tokens(const StoredRows & stored, const int64_t * tokens, const float * HWY_RESTRICT queries,
                           int64_t query_step, float * HWY_RESTRICT scores, int64_t score_step) {
    const typename Stored::Value * row[tokens_together];
    for (int t = 0; t < tokens_together; t++) {
        row[t] = row_of<Stored>(stored, tokens[t]);
    }
    Vector sums[count][tokens_together];
    for (auto & sum : sums) {
        std::fill_n(sum, tokens_together, hn::Zero(tag));
    }
    const auto add = [&](int64_t k, const Vector(&key)[tokens_together]) HWY_ATTR {
#pragma GCC unroll 4
        for (int i = 0; i < count; i++) {
            const auto query = hn::LoadU(tag, queries + (i * query_step) + k);
#pragma GCC unroll 4
            for (int t = 0; t < tokens_together; t++) {
                sums[i][t] = hn::MulAdd(query, key[t], sums[i][t]);
            }
        }
    };
    int64_t k = 0;
    for (; k + lanes <= stored.size; k += lanes) {
        const Vector key[tokens_together] = { Stored::load(row[0] + k), Stored::load(row[1] + k),
                                              Stored::load(row[2] + k), Stored::load(row[3] + k) };
        add(k, key);
    }
    if (k < stored.size) {
        const int64_t n = stored.size - k;
        const Vector key[tokens_together] = { load_rest<Stored>(row[0] + k, n), load_rest<Stored>(row[1] + k, n),
                                              load_rest<Stored>(row[2] + k, n), load_rest<Stored>(row[3] + k, n) };
        add(k, key);
    }
    for (int i = 0; i < count; i++) {
        store_sums(sums[i][0], sums[i][1], sums[i][2], sums[i][3], scores + (i * score_step));
    }
}

template <class Stored>
HWY_INLINE void dot_some(const StoredRows & stored, const int64_t * tokens, const float * HWY_RESTRICT queries,
                         int64_t count, int64_t query_step, float * HWY_RESTRICT scores, int64_t score_step) {
    for (; count > 0;
         count -= rows_together, queries += rows_together * query_step, scores += rows_together * score_step) {
        switch (count) {
        case 1:
            dot_tokens<Stored, 1>(stored, tokens, queries, query_step, scores, score_step);
            break;
        case 2:
            dot_tokens<Stored, 2>(stored, tokens, queries, query_step, scores, score_step);
            break;
        case 3:
            dot_tokens<Stored, 3>(stored, tokens, queries, query_step, scores, score_step);
            break;
        default:
            dot_tokens<Stored, rows_together>(stored, tokens, queries, query_step, scores, score_step);
        }
    }
}

template <class Stored>
HWY_INLINE void dot_stored(const StoredRows & stored, const TokenList & tokens, const float * HWY_RESTRICT queries,
                           int64_t count, int64_t query_step, float * HWY_RESTRICT scores, int64_t score_step) {
    int64_t together[tokens_together];
    int64_t j = 0;
    for (; j + tokens_together <= tokens.count; j += tokens_together) {
        for (int64_t t = 0; t < tokens_together; t++) {
            together[t] = tokens[j + t];
            fetch(stored, tokens, j + t + tokens_ahead);
        }
        dot_some<Stored>(stored, together, queries, count, query_step, scores + j, score_step);
    }
    const int64_t rest = tokens.count - j;
    for (int64_t i = 0; i < count && rest > 0; i++) {
        float found[tokens_together];
        for (int64_t t = 0; t < tokens_together; t++) {
            together[t] = tokens[j + std::min(t, rest - 1)];
        }
        dot_tokens<Stored, 1>(stored, together, queries + (i * query_step), query_step, found, tokens_together);
        std::copy_n(found, rest, scores + (i * score_step) + j);
    }
}

HWY_ATTR void dot_rows(const StoredRows & stored, const TokenList & tokens, const float * HWY_RESTRICT queries,
                       int64_t count, int64_t query_step, float * HWY_RESTRICT scores, int64_t score_step) {
    switch (stored.format) {
    case Format::f16:
        return dot_stored<StoredF16>(stored, tokens, queries, count, query_step, scores, score_step);
    case Format::bf16:
        return dot_stored<StoredBf16>(stored, tokens, queries, count, query_step, scores, score_step);
    default:
        return dot_stored<StoredF32>(stored, tokens, queries, count, query_step, scores, score_step);
    }
}

// `count` rows of sums over `vectors` vectors of the values, from value `from` on; the last vector may be short.
template <class Stored, int count, int vectors>
HWY_INLINE void add_part(const StoredRows & stored, const TokenList & tokens, const float * HWY_RESTRICT weights,
                         int64_t weight_step, int64_t from, float * HWY_RESTRICT out, int64_t out_step) {
    Vector sums[count][vectors];
    for (auto & sum : sums) {
        std::fill_n(sum, vectors, hn::Zero(tag));
    }
    for (int64_t j = 0; j < tokens.count; j++) {
        fetch(stored, tokens, j + tokens_ahead);
        const auto * row = row_of<Stored>(stored, tokens[j]) + from;
        Vector weight[count];
        for (int i = 0; i < count; i++) {
            weight[i] = hn::Set(tag, weights[(i * weight_step) + j]);
        }
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++) {
            const auto value = Stored::load(row + (v * lanes));
#pragma GCC unroll 4
            for (int i = 0; i < count; i++) {
                sums[i][v] = hn::MulAdd(weight[i], value, sums[i][v]);
            }
        }
    }
    for (int i = 0; i < count; i++) {
        for (int v = 0; v < vectors; v++) {
            float * at = out + (i * out_step) + from + (v * lanes);
            hn::StoreU(hn::Add(hn::LoadU(tag, at), sums[i][v]), tag, at);
        }
    }
}

template <class Stored>
HWY_INLINE void add_rest(const StoredRows & stored, const TokenList & tokens, const float * HWY_RESTRICT weights,
                         int64_t count, int64_t weight_step, int64_t from, float * HWY_RESTRICT out, int64_t out_step) {
    const int64_t n = stored.size - from;
    for (int64_t j = 0; j < tokens.count && n > 0; j++) {
        alignas(64) float value[lanes];
        hn::Store(load_rest<Stored>(row_of<Stored>(stored, tokens[j]) + from, n), tag, value);
        for (int64_t i = 0; i < count; i++) {
            for (int64_t k = 0; k < n; k++) {
                out[(i * out_step) + from + k] += weights[(i * weight_step) + j] * value[k];
            }
        }
    }
}

template <class Stored, int count>
HWY_INLINE void add_few(const StoredRows & stored, const TokenList & tokens, const float * HWY_RESTRICT weights,
                        int64_t weight_step, float * HWY_RESTRICT out, int64_t out_step) {
    constexpr int sums = HWY_TARGET == HWY_AVX2 ? 12 : 24; // that the registers hold
    int64_t from = 0;
    if constexpr (8 * count <= sums) {
        for (; from + (8 * lanes) <= stored.size; from += 8 * lanes) {
            add_part<Stored, count, 8>(stored, tokens, weights, weight_step, from, out, out_step);
        }
    }
    if constexpr (4 * count <= sums) {
        for (; from + (4 * lanes) <= stored.size; from += 4 * lanes) {
            add_part<Stored, count, 4>(stored, tokens, weights, weight_step, from, out, out_step);
        }
    }
    for (; from + (2 * lanes) <= stored.size; from += 2 * lanes) {
        add_part<Stored, count, 2>(stored, tokens, weights, weight_step, from, out, out_step);
    }
    for (; from + lanes <= stored.size; from += lanes) {
        add_part<Stored, count, 1>(stored, tokens, weights, weight_step, from, out, out_step);
    }
    add_rest<Stored>(stored, tokens, weights, count, weight_step, from, out, out_step);
}

template <class Stored>
HWY_INLINE void add_stored(const StoredRows & stored, const TokenList & tokens, const float * HWY_RESTRICT weights,
                           int64_t count, int64_t weight_step, float * HWY_RESTRICT out, int64_t out_step) {
    for (int64_t i = 0; i < count;
         i += rows_together, weights += rows_together * weight_step, out += rows_together * out_step) {
        switch (std::min<int64_t>(rows_together, count - i)) {
        case 1:
            add_few<Stored, 1>(stored, tokens, weights, weight_step, out, out_step);
            break;
        case 2:
            add_few<Stored, 2>(stored, tokens, weights, weight_step, out, out_step);
            break;
        case 3:
            add_few<Stored, 3>(stored, tokens, weights, weight_step, out, out_step);
            break;
        default:
            add_few<Stored, rows_together>(stored, tokens, weights, weight_step, out, out_step);
        }
    }
}

HWY_ATTR void add_rows(const StoredRows & stored, const TokenList & tokens, const float * HWY_RESTRICT weights,
                       int64_t count, int64_t weight_step, float * HWY_RESTRICT out, int64_t out_step) {
    switch (stored.format) {
    case Format::f16:
        return add_stored<StoredF16>(stored, tokens, weights, count, weight_step, out, out_step);
    case Format::bf16:
        return add_stored<StoredBf16>(stored, tokens, weights, count, weight_step, out, out_step);
    default:
        return add_stored<StoredF32>(stored, tokens, weights, count, weight_step, out, out_step);
    }
}

} // namespace cascade::attend::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
