#include "cover/index/rough_keys.h"

#include "cascade/cover.h"
#include "cover/index/magnitude.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>

namespace cascade::cover {

namespace {

constexpr float largest_code = 7.0F;
constexpr float largest_query = 127.0F;
constexpr int zero_code = 8;

// 0 for a step that can't be divided by: of zeros, of next to nothing, of what isn't finite.
float inverse_of(float step) {
    const float inverse = 1.0F / step;
    return step > 0.0F && std::isfinite(step) && std::isfinite(inverse) ? inverse : 0.0F;
}

const RoughKernel & kernel() {
    const std::string_view isa = isa_in_use();
    if (isa == "avx512" && rough_avx512() != nullptr) {
        return *rough_avx512();
    }
    if ((isa == "avx512" || isa == "avx2") && rough_avx2() != nullptr) {
        return *rough_avx2();
    }
    return rough_plain;
}

} // namespace

RoughKeys::RoughKeys(int64_t kv_heads, int64_t key_size)
    : heads(kv_heads), size(key_size), means(static_cast<size_t>(kv_heads * key_size)),
      codes(static_cast<size_t>(kv_heads)), steps(static_cast<size_t>(kv_heads)) {}

void RoughKeys::grow(int64_t cells) {
    if (cells <= capacity) {
        return;
    }
    const int64_t wanted =
        (std::max(cells, capacity + (capacity / 4)) + cells_together - 1) / cells_together * cells_together;
    for (auto & of_head : codes) {
        of_head.resize(static_cast<size_t>(wanted * size / 2), 0);
    }
    for (auto & of_head : steps) {
        of_head.resize(static_cast<size_t>(wanted), 0.0F);
    }
    capacity = wanted;
}

void RoughKeys::set_mean(const float * keys, int64_t count) {
    for (int64_t i = 0; i < heads * size; i++) {
        double sum = 0.0;
        int64_t finite = 0;
        for (int64_t k = 0; k < count; k++) {
            const float value = keys[(k * heads * size) + i];
            sum += std::isfinite(value) ? value : 0.0;
            finite += std::isfinite(value) ? 1 : 0;
        }
        means[static_cast<size_t>(i)] = finite > 0 ? static_cast<float>(sum / static_cast<double>(finite)) : 0.0F;
    }
    mean_known = true;
}

void RoughKeys::write(int64_t head, int64_t cell, const float * key) {
    const float * mean = means.data() + (head * size);
    float rest[values_of_block];
    float largest = 0.0F;
    for (int64_t i = 0; i < size; i += values_of_block) {
        for (int64_t j = 0; j < values_of_block; j++) {
            rest[j] = key[i + j] - mean[i + j];
        }
        largest = std::max(largest, largest_magnitude(rest, values_of_block));
    }
    const float inverse = inverse_of(largest / largest_code);
    const float step = inverse > 0.0F ? largest / largest_code : 0.0F;
    steps[static_cast<size_t>(head)][static_cast<size_t>(cell)] = step;
    uint8_t * tile = codes[static_cast<size_t>(head)].data() +
                     (cell / cells_of_tile * (size / values_of_block) * bytes_of_block) + (cell % cells_of_tile * 4);
    for (int64_t i = 0; i < size; i += values_of_block, tile += bytes_of_block) {
        uint8_t code[values_of_block];
        for (int64_t j = 0; j < values_of_block; j++) {
            const float scaled = inverse > 0.0F ? (key[i + j] - mean[i + j]) * inverse : 0.0F;
            const float bounded = std::clamp(to_whole(scaled), -largest_code, largest_code);
            code[j] = static_cast<uint8_t>(static_cast<int>(bounded) + zero_code);
        }
        for (int64_t b = 0; b < 4; b++) {
            tile[b] = static_cast<uint8_t>(code[b] | (code[b + 4] << 4U));
        }
    }
}

RoughTiles RoughKeys::tiles(int64_t head) const {
    return { codes[static_cast<size_t>(head)].data(), steps[static_cast<size_t>(head)].data(), size };
}

int64_t RoughKeys::bytes() const { return heads * capacity * ((size / 2) + static_cast<int64_t>(sizeof(float))); }

RoughQuery RoughKeys::round(int64_t head, const float * query, float scale, int8_t * values) const {
    const float * mean = means.data() + (head * size);
    const float step = largest_magnitude(query, size) / largest_query;
    const float inverse = inverse_of(step);
    RoughQuery rough;
    rough.values = values;
    double shift = 0.0;
    double magnitudes = 0.0;
    for (int64_t i = 0; i < size; i++) {
        const float rounded = inverse > 0.0F ? to_whole(query[i] * inverse) : 0.0F;
        values[i] = static_cast<int8_t>(rounded);
        rough.offset += zero_code * static_cast<int32_t>(rounded);
        shift += static_cast<double>(query[i]) * mean[i];
        magnitudes += std::fabs(query[i]);
    }
    rough.scale = scale * step;
    rough.shift = static_cast<float>(shift) * scale;
    // a key is off by half a step at most, a query by half of its own, and a rounded key is at most 7 steps long
    const double bound = (0.5 * magnitudes) + (0.5 * step * largest_code * static_cast<double>(size));
    rough.error = static_cast<float>(bound * std::fabs(scale) * 1.0001);
    return rough;
}

void rough_logits(const RoughTiles & tiles, int64_t first, int64_t last, std::span<const RoughQuery> rows, float * out,
                  int64_t stride) {
    kernel().logits(tiles, first, last, rows, out, stride);
}

void rough_best(const RoughTiles & tiles, int64_t first, int64_t last, std::span<const RoughQuery> rows,
                const float * thresholds, float * best) {
    kernel().best(tiles, first, last, rows, thresholds, best);
}

} // namespace cascade::cover
