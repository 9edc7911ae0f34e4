// Eight cells in a register.
#include "cover/index/rough_keys.h"

#if defined(__AVX2__) && defined(__FMA__)

#include <immintrin.h>
#include <limits>

namespace cascade::cover {

namespace {

constexpr int64_t cells_of_register = 8;

// Bytes of codes times bytes of a query, four products summed in each lane: 15 * 127 * 2 fits 16 bits.
__m256i add_products(__m256i sum, __m256i codes, __m256i values) {
    const __m256i pairs = _mm256_maddubs_epi16(codes, values);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

__m256i four_values(const int8_t * values, int64_t from) {
    int32_t four = 0;
    __builtin_memcpy(&four, values + from, sizeof(four));
    return _mm256_set1_epi32(four);
}

// Half `half` of a tile: eight of its cells.
__m256 half_logits(const RoughTiles & tiles, int64_t tile, int64_t half, const RoughQuery & row) {
    const uint8_t * block = tiles.tile(tile) + (half * bytes_of_block / 2);
    const __m256i mask = _mm256_set1_epi8(15);
    __m256i sum = _mm256_setzero_si256();
    __m256i other = _mm256_setzero_si256();
    for (int64_t i = 0; i < tiles.key_size; i += values_of_block, block += bytes_of_block) {
        const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(block));
        sum = add_products(sum, _mm256_and_si256(bytes, mask), four_values(row.values, i));
        other =
            add_products(other, _mm256_and_si256(_mm256_srli_epi16(bytes, 4), mask), four_values(row.values, i + 4));
    }
    const __m256i centred = _mm256_sub_epi32(_mm256_add_epi32(sum, other), _mm256_set1_epi32(row.offset));
    const __m256 product = _mm256_mul_ps(_mm256_cvtepi32_ps(centred), _mm256_set1_ps(row.scale));
    const __m256 steps = _mm256_loadu_ps(tiles.steps + (tile * cells_of_tile) + (half * cells_of_register));
    return _mm256_fmadd_ps(product, steps, _mm256_set1_ps(row.shift));
}

void logits(const RoughTiles & tiles, int64_t first, int64_t last, std::span<const RoughQuery> rows, float * out,
            int64_t stride) {
    for (int64_t tile = first; tile < last; tile++) {
        for (size_t r = 0; r < rows.size(); r++) {
            for (int64_t half = 0; half < 2; half++) {
                _mm256_storeu_ps(out + (static_cast<int64_t>(r) * stride) + (tile * cells_of_tile) +
                                     (half * cells_of_register),
                                 half_logits(tiles, tile, half, rows[r]));
            }
        }
    }
}

void best(const RoughTiles & tiles, int64_t first, int64_t last, std::span<const RoughQuery> rows,
          const float * thresholds, float * found) {
    for (int64_t tile = first; tile < last; tile++) {
        for (int64_t half = 0; half < 2; half++) {
            __m256 largest = _mm256_set1_ps(-std::numeric_limits<float>::infinity());
            for (size_t r = 0; r < rows.size(); r++) {
                const __m256 above =
                    _mm256_sub_ps(half_logits(tiles, tile, half, rows[r]), _mm256_set1_ps(thresholds[r]));
                largest = _mm256_max_ps(above, largest); // in this order: what isn't a number is passed over
            }
            _mm256_storeu_ps(found + (tile * cells_of_tile) + (half * cells_of_register), largest);
        }
    }
}

} // namespace

const RoughKernel * rough_avx2() {
    static const RoughKernel kernel = { "avx2", logits, best };
    static const bool there = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
    return there ? &kernel : nullptr;
}

} // namespace cascade::cover

#else

namespace cascade::cover {

const RoughKernel * rough_avx2() { return nullptr; }

} // namespace cascade::cover

#endif
