#include "attend/weights.h"

#include "attend/exponentials.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cascade {

float Logit::operator()(float product) const {
    const float x = pre_scale * product;
    return post_scale * (soft_cap != 0.0F ? soft_cap * std::tanh(x) : x);
}

namespace attend {

namespace {

constexpr float hidden = -std::numeric_limits<float>::infinity();

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

} // namespace

Weights::Weights(const Input & input, Team & team)
    : in(input), pack_floats(ceil_div(in.size, cover::segment) * cover::segment * ops.rows),
      scale(in.logit.soft_cap != 0.0F ? 1.0F : in.logit.pre_scale * in.logit.post_scale) {
    pack_queries(team);
    pack_keys(team);
}

int64_t Weights::segments() const { return ceil_div(ceil_div(in.columns, ops.columns) * ops.columns, cover::segment); }

void Weights::pack_queries(Team & team) {
    const int64_t packs = parts() * part_packs;
    packed_queries = cover::aligned_floats(packs * pack_floats);
    team.run(packs, [&](int64_t pack) {
        float * out = packed_queries.get() + (pack * pack_floats);
        std::fill_n(out, pack_floats, 0.0F);
        for (int64_t i = 0; i < ops.rows && (pack * ops.rows) + i < in.rows; i++) {
            const float * row = in.queries + (((pack * ops.rows) + i) * in.size);
            cover::write_segments(row, in.size, out + (i * cover::segment), ops.rows * cover::segment,
                                  [this](float value) { return value * scale; });
        }
    });
}

void Weights::pack_keys(Team & team) {
    const int64_t count = ceil_div(in.columns, ops.columns);
    const int64_t panel_floats = in.size * ops.columns;
    panels = cover::aligned_floats(count * panel_floats);
    team.run(count, [&](int64_t panel) {
        float * out = panels.get() + (panel * panel_floats);
        for (int64_t j = 0; j < ops.columns; j++) {
            const int64_t column = (panel * ops.columns) + j;
            const float * key = in.keys + (column * in.size);
            for (int64_t k = 0; k < in.size; k++) {
                out[(k * ops.columns) + j] = column < in.columns ? key[k] : 0.0F;
            }
        }
    });
}

// A panel stays in the nearest cache for all packs of the part.
void Weights::multiply(int64_t part, const WeightTile & tile) const {
    const int64_t packs = ceil_div(tile.rows, ops.rows);
    const int64_t piece = std::min<int64_t>(cover::segment, ops.columns);
    std::vector<float> products(static_cast<size_t>(ops.rows * ops.columns));
    for (int64_t panel = 0; panel * ops.columns < in.columns; panel++) {
        for (int64_t p = 0; p < packs; p++) {
            ops.multiply(in.size, packed_queries.get() + (((part * part_packs) + p) * pack_floats),
                         panels.get() + (panel * in.size * ops.columns), products.data(), false);
            for (int64_t j = 0; j < ops.columns; j += piece) {
                const int64_t column = (panel * ops.columns) + j;
                float * out = tile.pack(p) + (column / cover::segment * tile.step) + (column % cover::segment);
                for (int64_t i = 0; i < ops.rows; i++) {
                    std::copy_n(products.data() + (i * ops.columns) + j, piece, out + (i * cover::segment));
                }
            }
        }
    }
}

// From products to exponentials.
void Weights::finish_row(int64_t row, const WeightTile & tile, int64_t i, float & sum) const {
    float * weights = tile.row(i);
    const auto at = [&](int64_t k) -> float & {
        return weights[(k / cover::segment * tile.step) + (k % cover::segment)];
    };
    const int64_t visible = in.visible(row);
    if (in.logit.soft_cap != 0.0F) {
        for (int64_t k = 0; k < visible; k++) {
            at(k) = in.logit(at(k));
        }
    }
    for (size_t k = 0; k < in.biases.size(); k++) {
        at(static_cast<int64_t>(k)) += in.biases[k];
    }
    for (int64_t k = visible; k < tile.segments * cover::segment; k++) {
        at(k) = hidden;
    }
    sum = exponentials(weights, tile.segments, tile.step, largest_of(weights, tile.segments, tile.step));
}

void Weights::compute(int64_t part, cover::Floats & memory, int64_t & capacity, WeightTile & tile) const {
    tile.first = part * part_rows;
    tile.rows = std::min(part_rows, in.rows - tile.first);
    tile.pack_rows = ops.rows;
    tile.step = ops.rows * cover::segment;
    tile.segments = segments();
    const int64_t needed = part_packs * tile.segments * tile.step;
    if (capacity < needed) {
        memory = cover::aligned_floats(needed);
        capacity = needed;
        std::fill_n(memory.get(), needed, 0.0F);
    }
    tile.weights = memory.get();
    multiply(part, tile);
    tile.sums.resize(static_cast<size_t>(tile.rows));
    for (int64_t i = 0; i < tile.rows; i++) {
        finish_row(tile.first + i, tile, i, tile.sums[static_cast<size_t>(i)]);
    }
    for (int64_t i = tile.rows; i < ceil_div(tile.rows, ops.rows) * ops.rows; i++) {
        for (int64_t s = 0; s < tile.segments; s++) { // rows that aren't there weigh nothing
            std::fill_n(tile.row(i) + (s * tile.step), cover::segment, 0.0F);
        }
    }
}

void Weights::for_each_part(Team & team, const std::function<void(int64_t part, const WeightTile & tile)> & use) const {
    std::atomic<int64_t> next{ 0 };
    team.run(team.size(), [&](int64_t) {
        cover::Floats memory; // kept for the thread's next part
        int64_t capacity = 0;
        WeightTile tile;
        for (int64_t part = next++; part < parts(); part = next++) {
            compute(part, memory, capacity, tile);
            use(part, tile);
        }
    });
}

} // namespace attend

} // namespace cascade
