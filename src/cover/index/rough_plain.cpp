// The oracle of the other versions.
#include "cover/index/rough_keys.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cascade::cover {

namespace {

float logit(const RoughTiles & tiles, int64_t cell, const RoughQuery & row) {
    const uint8_t * bytes = tiles.tile(cell / cells_of_tile) + (cell % cells_of_tile * 4);
    int32_t sum = 0;
    for (int64_t i = 0; i < tiles.key_size; i += values_of_block, bytes += bytes_of_block) {
        for (int64_t b = 0; b < 4; b++) {
            sum += (bytes[b] & 15) * row.values[i + b];
            sum += (bytes[b] >> 4) * row.values[i + b + 4];
        }
    }
    const auto product = static_cast<float>(sum - row.offset) * row.scale;
    return std::fma(product, tiles.steps[cell], row.shift);
}

void logits(const RoughTiles & tiles, int64_t first, int64_t last, std::span<const RoughQuery> rows, float * out,
            int64_t stride) {
    for (size_t r = 0; r < rows.size(); r++) {
        for (int64_t cell = first * cells_of_tile; cell < last * cells_of_tile; cell++) {
            out[(static_cast<int64_t>(r) * stride) + cell] = logit(tiles, cell, rows[r]);
        }
    }
}

void best(const RoughTiles & tiles, int64_t first, int64_t last, std::span<const RoughQuery> rows,
          const float * thresholds, float * found) {
    for (int64_t cell = first * cells_of_tile; cell < last * cells_of_tile; cell++) {
        found[cell] = -std::numeric_limits<float>::infinity();
        for (size_t r = 0; r < rows.size(); r++) {
            found[cell] = std::max(found[cell], logit(tiles, cell, rows[r]) - thresholds[r]);
        }
    }
}

} // namespace

const RoughKernel rough_plain = { "plain", logits, best };

} // namespace cascade::cover
