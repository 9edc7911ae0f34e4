// Sixteen cells in a register, four bytes of each multiplied and summed by one instruction (VNNI).
#include "cover/index/rough_keys.h"

#if defined(__AVX512VNNI__)

#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized" // GCC 12, of its own header
#endif
#include <immintrin.h>
#include <limits>

namespace cascade::cover {

namespace {

// Four values of a query in every lane.
__m512i four_values(const int8_t * values, int64_t from) {
    int32_t four = 0;
    __builtin_memcpy(&four, values + from, sizeof(four));
    return _mm512_set1_epi32(four);
}

struct Halves {
    __m512i low;
    __m512i high;
};

Halves halves_of(const uint8_t * block) {
    const __m512i bytes = _mm512_loadu_si512(block);
    const __m512i mask = _mm512_set1_epi8(15);
    return { _mm512_and_si512(bytes, mask), _mm512_and_si512(_mm512_srli_epi16(bytes, 4), mask) };
}

__m512 logit_of(__m512i sum, const RoughQuery & row, __m512 steps) {
    const __m512i centred = _mm512_sub_epi32(sum, _mm512_set1_epi32(row.offset));
    const __m512 product = _mm512_mul_ps(_mm512_cvtepi32_ps(centred), _mm512_set1_ps(row.scale));
    return _mm512_fmadd_ps(product, steps, _mm512_set1_ps(row.shift));
}

constexpr int64_t prefetched = 4096; // bytes ahead: the codes come from far, and the next ones are known

// `count` rows on two tiles at a time, so that no sum waits for itself.
template <int count>
void some_logits(const RoughTiles & tiles, int64_t first, int64_t last, const RoughQuery * rows, float * out,
                 int64_t stride) {
    const int64_t tile_bytes = tiles.key_size / values_of_block * bytes_of_block;
    for (int64_t tile = first; tile < last; tile += 2) {
        const int both = tile + 1 < last ? 2 : 1;
        const uint8_t * left = tiles.tile(tile);
        const uint8_t * right = left + (both == 2 ? tile_bytes : 0);
        __m512i sums[count][2] = {};
        for (int64_t i = 0; i < tiles.key_size; i += values_of_block, left += bytes_of_block, right += bytes_of_block) {
            _mm_prefetch(reinterpret_cast<const char *>(left + prefetched), _MM_HINT_T0);
            _mm_prefetch(reinterpret_cast<const char *>(right + prefetched), _MM_HINT_T0);
            const Halves a = halves_of(left);
            const Halves b = halves_of(right);
#pragma GCC unroll 4
            for (int r = 0; r < count; r++) {
                const __m512i lower = four_values(rows[r].values, i);
                const __m512i upper = four_values(rows[r].values, i + 4);
                sums[r][0] = _mm512_dpbusd_epi32(sums[r][0], a.low, lower);
                sums[r][1] = _mm512_dpbusd_epi32(sums[r][1], b.low, lower);
                sums[r][0] = _mm512_dpbusd_epi32(sums[r][0], a.high, upper);
                sums[r][1] = _mm512_dpbusd_epi32(sums[r][1], b.high, upper);
            }
        }
        for (int r = 0; r < count; r++) {
            for (int t = 0; t < both; t++) {
                const int64_t cell = (tile + t) * cells_of_tile;
                const __m512 steps = _mm512_loadu_ps(tiles.steps + cell);
                _mm512_storeu_ps(out + (r * stride) + cell, logit_of(sums[r][t], rows[r], steps));
            }
        }
    }
}

void logits(const RoughTiles & tiles, int64_t first, int64_t last, std::span<const RoughQuery> rows, float * out,
            int64_t stride) {
    size_t r = 0;
    for (; r + 4 <= rows.size(); r += 4) {
        some_logits<4>(tiles, first, last, rows.data() + r, out + (static_cast<int64_t>(r) * stride), stride);
    }
    float * rest = out + (static_cast<int64_t>(r) * stride);
    switch (rows.size() - r) {
    case 1:
        return some_logits<1>(tiles, first, last, rows.data() + r, rest, stride);
    case 2:
        return some_logits<2>(tiles, first, last, rows.data() + r, rest, stride);
    case 3:
        return some_logits<3>(tiles, first, last, rows.data() + r, rest, stride);
    default:
        return;
    }
}

constexpr int tiles_together = 4;
constexpr int rows_together = 3;
constexpr int64_t most_values = 512;

// The codes of a few tiles as bytes, each four values of sixteen cells a register.
struct Unpacked {
    alignas(64) uint8_t bytes[tiles_together][most_values * cells_of_tile];

    void read(const RoughTiles & tiles, int64_t first, int count) {
        for (int t = 0; t < tiles_together; t++) {
            const uint8_t * from = tiles.tile(first + (t < count ? t : 0));
            uint8_t * to = bytes[t];
            for (int64_t i = 0; i < tiles.key_size;
                 i += values_of_block, from += bytes_of_block, to += 2 * bytes_of_block) {
                const Halves halves = halves_of(from);
                _mm512_store_si512(to, halves.low);
                _mm512_store_si512(to + bytes_of_block, halves.high);
            }
        }
    }
};

template <int count>
void take_best(const Unpacked & unpacked, int64_t key_size, const RoughQuery * rows, const float * thresholds,
               const __m512 (&steps)[tiles_together], __m512 (&best)[tiles_together]) {
    __m512i sums[count][tiles_together] = {};
    for (int64_t i = 0; i < key_size; i += 4) {
        __m512i codes[tiles_together];
#pragma GCC unroll 4
        for (int t = 0; t < tiles_together; t++) {
            codes[t] = _mm512_load_si512(unpacked.bytes[t] + (i / 4 * bytes_of_block));
        }
#pragma GCC unroll 3
        for (int r = 0; r < count; r++) {
            const __m512i values = four_values(rows[r].values, i);
#pragma GCC unroll 4
            for (int t = 0; t < tiles_together; t++) {
                sums[r][t] = _mm512_dpbusd_epi32(sums[r][t], codes[t], values);
            }
        }
    }
#pragma GCC unroll 3
    for (int r = 0; r < count; r++) {
        const __m512 threshold = _mm512_set1_ps(thresholds[r]);
#pragma GCC unroll 4
        for (int t = 0; t < tiles_together; t++) {
            // in this order: what isn't a number is passed over
            best[t] = _mm512_max_ps(_mm512_sub_ps(logit_of(sums[r][t], rows[r], steps[t]), threshold), best[t]);
        }
    }
}

void best(const RoughTiles & tiles, int64_t first, int64_t last, std::span<const RoughQuery> rows,
          const float * thresholds, float * found) {
    if (tiles.key_size > most_values) {
        return rough_plain.best(tiles, first, last, rows, thresholds, found);
    }
    Unpacked unpacked;
    for (int64_t tile = first; tile < last; tile += tiles_together) {
        const int count = static_cast<int>(last - tile < tiles_together ? last - tile : tiles_together);
        unpacked.read(tiles, tile, count);
        __m512 steps[tiles_together];
        __m512 largest[tiles_together];
        for (int t = 0; t < tiles_together; t++) {
            steps[t] = _mm512_loadu_ps(tiles.steps + ((tile + (t < count ? t : 0)) * cells_of_tile));
            largest[t] = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
        }
        size_t r = 0;
        for (; r + rows_together <= rows.size(); r += rows_together) {
            take_best<rows_together>(unpacked, tiles.key_size, rows.data() + r, thresholds + r, steps, largest);
        }
        for (; r < rows.size(); r++) {
            take_best<1>(unpacked, tiles.key_size, rows.data() + r, thresholds + r, steps, largest);
        }
        for (int t = 0; t < count; t++) {
            _mm512_storeu_ps(found + ((tile + t) * cells_of_tile), largest[t]);
        }
    }
}

} // namespace

const RoughKernel * rough_avx512() {
    static const RoughKernel kernel = { "avx512", logits, best };
    static const bool there = __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
                              __builtin_cpu_supports("avx512vnni") != 0;
    return there ? &kernel : nullptr;
}

} // namespace cascade::cover

#else

namespace cascade::cover {

const RoughKernel * rough_avx512() { return nullptr; }

} // namespace cascade::cover

#endif
