// Attention on a selection: one softmax over speakers, opened tokens and the recent ones.
#include "attend/weights.h"

#include <algorithm>

namespace cascade {

namespace {

using attend::Weights;
using attend::WeightTile;

// Values that the nearest cache holds of a panel.
constexpr int64_t values_at_a_time = 256;

// Rows of the speakers, of the opened tokens and of the recent ones.
std::vector<float> gather(const Block & block, const Selection & selection, const std::vector<float> & speakers,
                          const float * rows, int64_t size) {
    const int64_t recent = block.tokens - block.past;
    std::vector<float> out;
    out.reserve(static_cast<size_t>((selection.read() + recent) * size));
    out.insert(out.end(), speakers.begin(), speakers.end());
    for (const int32_t token : selection.opened) {
        out.insert(out.end(), rows + (token * size), rows + ((token + 1) * size));
    }
    out.insert(out.end(), rows + (block.past * size), rows + (block.tokens * size));
    return out;
}

// Values in panels of the kernel's columns; rows beyond the last are zeros.
class ValuePanels {
  public:
    ValuePanels(const std::vector<float> & values, int64_t value_size, int64_t padded_rows)
        : size(value_size), rows(padded_rows) {
        const int64_t count = static_cast<int64_t>(values.size()) / size;
        memory = cover::aligned_floats(panels() * rows * ops.columns);
        std::fill_n(memory.get(), panels() * rows * ops.columns, 0.0F);
        for (int64_t token = 0; token < count; token++) {
            for (int64_t i = 0; i < size; i++) {
                memory[static_cast<size_t>((i / ops.columns * rows * ops.columns) + (token * ops.columns) +
                                           (i % ops.columns))] = values[static_cast<size_t>((token * size) + i)];
            }
        }
    }

    // Weighted sums of a tile's rows into out, value_size floats each, divided by the weights' sums.
    void weigh(const WeightTile & tile, float * out) const {
        const int64_t packs = (tile.rows + ops.rows - 1) / ops.rows;
        std::vector<float> sums(static_cast<size_t>(packs * ops.rows * ops.columns));
        for (int64_t panel = 0; panel < panels(); panel++) {
            for (int64_t k = 0; k < rows; k += values_at_a_time) {
                for (int64_t p = 0; p < packs; p++) {
                    ops.multiply(std::min(values_at_a_time, rows - k), tile.pack(p) + (k * ops.rows),
                                 memory.get() + (((panel * rows) + k) * ops.columns),
                                 sums.data() + (p * ops.rows * ops.columns), k > 0);
                }
            }
            const int64_t first = panel * ops.columns;
            const int64_t width = std::min<int64_t>(ops.columns, size - first);
            for (int64_t i = 0; i < tile.rows; i++) {
                const float inverse = 1.0F / tile.sums[static_cast<size_t>(i)];
                for (int64_t j = 0; j < width; j++) {
                    out[(i * size) + first + j] = sums[static_cast<size_t>((i * ops.columns) + j)] * inverse;
                }
            }
        }
    }

  private:
    int64_t panels() const { return (size + ops.columns - 1) / ops.columns; }

    const cover::Kernel & ops = cover::kernel();
    int64_t size;
    int64_t rows;
    cover::Floats memory;
};

} // namespace

void attend_selection(const Block & block, const Selection & selection, float * out, Team & team) {
    const std::vector<float> keys = gather(block, selection, selection.keys, block.key, block.key_size);
    const std::vector<float> values = gather(block, selection, selection.values, block.value, block.value_size);
    Weights::Input input;
    input.queries = block.query;
    input.rows = block.group * block.queries;
    input.keys = keys.data();
    input.columns = selection.read() + block.tokens - block.past;
    input.size = block.key_size;
    input.biases = selection.log_counts;
    input.logit = block.logit;
    input.visible = [&](int64_t row) { return input.columns - block.queries + (row % block.queries) + 1; };
    const Weights weights(input, team);
    const ValuePanels panels(values, block.value_size, weights.padded_columns());
    weights.for_each_part(
        team, [&](int64_t, const WeightTile & tile) { panels.weigh(tile, out + (tile.first * block.value_size)); });
}

} // namespace cascade
