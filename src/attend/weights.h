// Softmax weights of many queries over many keys, in tiles: what choosing and attending are both made of.
//
// A row (query) sees the first so many columns (keys). A part is a few packs of rows; parts are independent.
#pragma once

#include "attend/method.h"
#include "cover/products.h"

#include <functional>

namespace cascade::attend {

// A part's weights, not yet divided by their sums. Rows stand in packs of `pack_rows`, as the kernel wants them:
// value k of row i at pack(i) + (k / 16) * step + k % 16.
struct WeightTile {
    int64_t first = 0; // row
    int64_t rows = 0;
    int64_t segments = 0; // of 16 columns, weights beyond a row's visible ones are 0
    int64_t step = 0;
    int64_t pack_rows = 0;
    float * weights = nullptr;
    std::vector<float> sums; // of each row

    float * row(int64_t i) const {
        return weights + (i / pack_rows * segments * step) + (i % pack_rows * cover::segment);
    }
    float * pack(int64_t i) const { return weights + (i * segments * step); }
};

class Weights {
  public:
    struct Input {
        const float * queries = nullptr; // rows x size
        int64_t rows = 0;
        const float * keys = nullptr; // columns x size
        int64_t columns = 0;
        int64_t size = 0;
        std::span<const float> biases; // added to the first columns' logits
        Logit logit;
        std::function<int64_t(int64_t row)> visible; // leading columns that a row sees; at least 1
    };

    Weights(const Input & input, Team & team);

    int64_t parts() const { return (in.rows + part_rows - 1) / part_rows; }
    int64_t padded_columns() const { return segments() * cover::segment; }

    // All parts, shared by the team. A tile's weights live until `use` returns.
    void for_each_part(Team & team, const std::function<void(int64_t part, const WeightTile & tile)> & use) const;

  private:
    int64_t segments() const;
    void pack_queries(Team & team);
    void pack_keys(Team & team);
    void compute(int64_t part, cover::Floats & memory, int64_t & capacity, WeightTile & tile) const;
    void multiply(int64_t part, const WeightTile & tile) const;
    void finish_row(int64_t row, const WeightTile & tile, int64_t i, float & sum) const;

    static constexpr int64_t part_packs = 4;

    const cover::Kernel & ops = cover::kernel();
    Input in;
    int64_t part_rows = part_packs * ops.rows;
    int64_t pack_floats;
    float scale; // already in the queries; 1 where there is a soft cap
    cover::Floats packed_queries;
    cover::Floats panels;
};

} // namespace cascade::attend
