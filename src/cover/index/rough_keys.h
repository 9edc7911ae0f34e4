// Keys of a cache's cells at four bits a value: a rough copy, multiplied where the keys themselves would be too many.
//
// Sixteen cells make a tile, laid out as the kernels multiply it: for each eight values a block of 64 bytes, in which
// cell l owns the bytes 4 l to 4 l + 3; the low half of byte b is value b of the eight, the high half value b + 4.
// A value is stored as code = round(value / step) + 8, between 1 and 15, with one step for each cell, after the mean
// of the first keys was taken away. So |value - step * (code - 8)| <= step / 2.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cascade::cover {

constexpr int64_t cells_of_tile = 16;
constexpr int64_t cells_together = 128; // arrays of cells are padded to this
constexpr int64_t values_of_block = 8;
constexpr int64_t bytes_of_block = 64;

// The codes of one KV head, as a kernel sees them.
struct RoughTiles {
    const uint8_t * codes = nullptr; // tiles x key_size / 8 x 64 bytes
    const float * steps = nullptr;   // one for each cell
    int64_t key_size = 0;

    const uint8_t * tile(int64_t index) const {
        return codes + (index * (key_size / values_of_block) * bytes_of_block);
    }
};

// A query rounded to eight bits. Its logit with a cell is
// scale * step * (sum of value * code - offset) + shift, give or take error * step.
struct RoughQuery {
    const int8_t * values = nullptr;
    int32_t offset = 0;
    float scale = 0.0F;
    float shift = 0.0F;
    float error = 0.0F;
};

class RoughKeys {
  public:
    // key_size must be a multiple of 8. Throws std::bad_alloc, here and where it grows.
    RoughKeys(int64_t kv_heads, int64_t key_size);

    static bool fits(int64_t key_size) { return key_size > 0 && key_size % values_of_block == 0; }

    void grow(int64_t cells); // keeps what is there
    bool has_mean() const { return mean_known; }

    // Before the first key is written: `keys` holds `count` keys of all heads, head after head.
    void set_mean(const float * keys, int64_t count);
    void forget_mean() { mean_known = false; }

    // One key of one head. One with a value that isn't finite is written as the mean, so that all logits are numbers.
    void write(int64_t head, int64_t cell, const float * key);

    RoughTiles tiles(int64_t head) const;
    int64_t bytes() const;

    // Rounds a query: `values` receives key_size bytes. Logits are scale * <query, key>.
    RoughQuery round(int64_t head, const float * query, float scale, int8_t * values) const;

  private:
    int64_t heads;
    int64_t size;
    int64_t capacity = 0; // cells, padded
    bool mean_known = false;
    std::vector<float> means;                // heads x size
    std::vector<std::vector<uint8_t>> codes; // by head
    std::vector<std::vector<float>> steps;   // by head
};

// Logits of tiles first … last - 1 for some query rows: row r's of cell c at out[r * stride + c]. Cells that were never
// written give anything.
void rough_logits(const RoughTiles & tiles, int64_t first, int64_t last, std::span<const RoughQuery> rows, float * out,
                  int64_t stride);

// For each cell of tiles first … last - 1 the largest of logit - thresholds[row] over all rows, to best[cell].
void rough_best(const RoughTiles & tiles, int64_t first, int64_t last, std::span<const RoughQuery> rows,
                const float * thresholds, float * best);

// One version for each instruction set; all give the same bits.
struct RoughKernel {
    const char * name;
    void (*logits)(const RoughTiles & tiles, int64_t first, int64_t last, std::span<const RoughQuery> rows, float * out,
                   int64_t stride);
    void (*best)(const RoughTiles & tiles, int64_t first, int64_t last, std::span<const RoughQuery> rows,
                 const float * thresholds, float * best);
};

extern const RoughKernel rough_plain;
const RoughKernel * rough_avx2();   // nullptr: not compiled in, or not there
const RoughKernel * rough_avx512(); // with VNNI

} // namespace cascade::cover
