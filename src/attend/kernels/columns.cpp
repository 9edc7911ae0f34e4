#include "attend/kernels/columns.h"

#include "attend/kernels/queries.h"

#include <algorithm>
#include <limits>

namespace cascade::attend {

namespace {

constexpr float hidden = -std::numeric_limits<float>::infinity();

// Values of neighbouring tokens stand side by side, those of one token do not: the engine's cache without flash.
bool is_transposed(const Rows & rows, const TokenList & tokens) {
    return rows.value_stride != 0 && rows.format != Format::other && tokens.list == nullptr &&
           rows.row_stride == format_bytes(rows.format);
}

void read_transposed(const Kernel & ops, const Rows & rows, int64_t head, int64_t stream, const TokenList & tokens,
                     int64_t size, float * out, int64_t step) {
    const char * start = rows.start(tokens.first, head, stream);
    constexpr int64_t together = 64;
    float values[together];
    for (int64_t t = 0; t < tokens.count; t += together) {
        const int64_t n = std::min(together, tokens.count - t);
        for (int64_t i = 0; i < size; i++) {
            ops.to_float(rows.format,
                         start + (static_cast<size_t>(i) * rows.value_stride) +
                             (static_cast<size_t>(t) * rows.row_stride),
                         n, values);
            for (int64_t j = 0; j < n; j++) {
                out[((t + j) * step) + i] = values[j];
            }
        }
    }
}

} // namespace

void read_rows(const Kernel & ops, const Rows & rows, int64_t head, int64_t stream, const TokenList & tokens,
               int64_t size, float * out, int64_t step) {
    if (is_transposed(rows, tokens)) {
        read_transposed(ops, rows, head, stream, tokens, size, out, step);
        return;
    }
    for (int64_t j = 0; j < tokens.count; j++) {
        read_row(ops, rows, tokens[j], head, stream, size, out + (j * step));
    }
}

void Columns::reset(int64_t columns, int64_t keys, int64_t values, Biases biases) {
    kernel_in_use = &kernel();
    columns_count = columns;
    key_size = keys;
    value_size = values;
    value_width = round_up(values, row_padding);
    biased = biases == Biases::all;
    const int64_t padded = round_up(columns, ops().columns);
    const int64_t whole = columns / ops().columns * ops().columns;
    float * key_floats = keys_memory.need(padded * key_size);
    float * value_floats = values_memory.need(padded * value_width);
    float * bias_floats = biases_memory.need(padded);
    numbers.resize(static_cast<size_t>(columns));
    std::fill_n(key_floats + (whole * key_size), (padded - whole) * key_size, 0.0F);
    std::fill_n(value_floats + (columns * value_width), (padded - columns) * value_width, 0.0F);
    std::fill_n(bias_floats, columns, 0.0F);
    std::fill_n(bias_floats + columns, padded - columns, hidden);
}

int64_t Columns::scratch_floats(const Attention & a) { return kernel().columns * a.key_size; }

void Columns::fill_keys(int64_t at, const float * rows, int64_t columns) {
    const int64_t across = ops().columns;
    int64_t j = 0;
    while (j < columns) {
        if ((at + j) % across == 0 && j + across <= columns) {
            ops().transpose(rows + (j * key_size), key_size, keys_memory.get() + ((at + j) * key_size));
            j += across;
            continue;
        }
        float * out = keys_memory.get() + ((at + j) / across * across * key_size) + ((at + j) % across);
        for (int64_t k = 0; k < key_size; k++) {
            out[k * across] = rows[(j * key_size) + k];
        }
        j++;
    }
}

void Columns::fill(int64_t at, const Attention & a, int64_t kv_head, int64_t stream, const TokenList & tokens,
                   Buffer & scratch) {
    const int64_t together = ops().columns;
    float * rows = scratch.need(together * key_size);
    for (int64_t j = 0; j < tokens.count;) {
        const int64_t to_panel_end = together - ((at + j) % together);
        const TokenList some = tokens.part(j, std::min(to_panel_end, tokens.count - j));
        read_rows(ops(), a.key, kv_head, stream, some, key_size, rows, key_size);
        fill_keys(at + j, rows, some.count);
        j += some.count;
    }
    float * values = values_memory.get() + (at * value_width);
    read_rows(ops(), a.value, kv_head, stream, tokens, value_size, values, value_width);
    for (int64_t j = 0; j < tokens.count; j++) {
        std::fill(values + (j * value_width) + value_size, values + ((j + 1) * value_width), 0.0F);
        numbers[static_cast<size_t>(at + j)] = static_cast<int32_t>(tokens[j]);
    }
}

void Columns::fill(int64_t at, const float * keys, const float * values, int64_t columns) {
    fill_keys(at, keys, columns);
    for (int64_t j = 0; j < columns; j++) {
        float * out = values_memory.get() + ((at + j) * value_width);
        std::copy_n(values + (j * value_size), value_size, out);
        std::fill(out + value_size, out + value_width, 0.0F);
        numbers[static_cast<size_t>(at + j)] = -1;
    }
}

void Columns::set_biases(int64_t at, const float * biases, int64_t columns) {
    std::transform(biases, biases + columns, biases_memory.get() + at, [](float bias) { return bias * log2_e; });
}

TokenList Columns::tokens(int64_t first, int64_t n) const {
    const int32_t * list = numbers.data() + first;
    for (int64_t i = 0; i < n; i++) {
        if (list[i] != list[0] + i || list[i] < 0) {
            return { list, 0, n };
        }
    }
    return { nullptr, list[0], n };
}

const float * Columns::biases(int64_t first) const {
    const bool whole = first + tile_columns <= columns_count || columns_count % ops().columns == 0;
    return biased || !whole ? biases_memory.get() + first : nullptr;
}

} // namespace cascade::attend
