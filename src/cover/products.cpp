#include "cover/products.h"

#include <algorithm>
#include <new>

namespace cascade::cover {

namespace {

// Values of a panel that the nearest cache holds beside a pack of rows.
constexpr int64_t values_at_a_time = 256;

static_assert(values_at_a_time % segment == 0);

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

} // namespace

Floats aligned_floats(int64_t count) {
    auto memory = hwy::AllocateAligned<float>(static_cast<size_t>(std::max<int64_t>(count, 1)));
    if (!memory) {
        throw std::bad_alloc();
    }
    return memory;
}

void Columns::add_room(std::span<const int32_t> added) {
    tokens.insert(tokens.end(), added.begin(), added.end());
    while (static_cast<int32_t>(panels.size()) < panel_count()) {
        panels.push_back(aligned_floats(size * kernel_in_use->columns));
        std::fill_n(panels.back().get(), size * kernel_in_use->columns, 0.0F);
    }
}

void Columns::fill_panel(const TokenRows & rows, int64_t panel, int64_t first) {
    std::vector<float> unit_row(static_cast<size_t>(size));
    for (int64_t column = 0; column < kernel_in_use->columns; column++) {
        const int64_t index = (panel * kernel_in_use->columns) + column;
        if (index >= first && index < count()) {
            kernel_in_use->write_unit_row(rows.row(token(static_cast<int32_t>(index))), size, unit_row.data(), segment);
            float * out = values_of(index);
            for (int64_t k = 0; k < size; k++) {
                out[k * kernel_in_use->columns] = unit_row[static_cast<size_t>(k)];
            }
        }
    }
}

void Columns::add_tokens(const TokenRows & rows, std::span<const int32_t> added, Team & team) {
    const int64_t first = count();
    add_room(added);
    const int64_t first_panel = first / kernel_in_use->columns;
    team.run(panel_count() - first_panel, [&](int64_t i) { fill_panel(rows, first_panel + i, first); });
}

int32_t Columns::count_before(int32_t token) const {
    return static_cast<int32_t>(std::lower_bound(tokens.begin(), tokens.end(), token) - tokens.begin());
}

RowBlock::RowBlock(int64_t row_size, int64_t most_rows) : size(row_size) {
    const int64_t most_parts = ceil_div(most_rows, part_rows);
    packed = aligned_floats(most_parts * part_packs * pack_floats);
    tiles = aligned_floats(most_parts * part_rows * ops.columns);
    std::fill_n(packed.get(), most_parts * part_packs * pack_floats, 0.0F);
}

void RowBlock::set(const TokenRows & rows, std::span<const int32_t> chosen) {
    source = rows;
    tokens.assign(chosen.begin(), chosen.end());
}

RowBlock::Part RowBlock::part_at(int64_t index) const {
    const int64_t first = index * part_rows;
    const int64_t last = std::min(first + part_rows, count());
    return { first, last, ceil_div(last - first, ops.rows), tiles.get() + (first * ops.columns) };
}

float * RowBlock::row_at(int64_t i) const {
    return packed.get() + (i / ops.rows * pack_floats) + (i % ops.rows * segment);
}

void RowBlock::pack(int64_t index) {
    const Part part = part_at(index);
    for (int64_t i = part.first; i < part.last; i++) {
        ops.write_unit_row(source.row(token(i)), size, row_at(i), row_step());
    }
}

uint64_t RowBlock::multiply_panel(const Part & part, const float * panel) const {
    for (int64_t k = 0; k < size; k += values_at_a_time) {
        const int64_t values = std::min(values_at_a_time, size - k);
        for (int64_t p = 0; p < part.packs; p++) {
            ops.multiply(values, row_at(part.first + (p * ops.rows)) + (k * ops.rows), panel + (k * ops.columns),
                         part.tile + (p * ops.rows * ops.columns), k > 0);
        }
    }
    return static_cast<uint64_t>(part.packs * ops.rows * ops.columns * size);
}

// Rows that may look at the whole panel are the usual case; those at their limit take its columns one by one.
void RowBlock::take_best(const Part & part, int32_t start, std::span<const int32_t> limit, Sign sign,
                         std::span<Best> best) const {
    const auto visible = [&](int64_t i) { return std::min(limit[static_cast<size_t>(i)] - start, ops.columns); };
    for (int64_t i = part.first; i < part.last;) {
        const float * products = part.tile + ((i - part.first) * ops.columns);
        int64_t end = i;
        while (end < part.last && visible(end) == ops.columns) {
            end++;
        }
        if (end > i) {
            ops.take_best(products, end - i, start, sign, &best[static_cast<size_t>(i)]);
            i = end;
        } else {
            for (int32_t j = 0; j < visible(i); j++) {
                take_better(products[j], start + j, sign, best[static_cast<size_t>(i)]);
            }
            i++;
        }
    }
}

void RowBlock::find_best(int64_t index, const Columns & columns, std::span<const int32_t> limit, Sign sign,
                         std::span<Best> best, Count & multiply_adds) {
    const Part part = part_at(index);
    const int32_t widest = *std::max_element(limit.begin() + part.first, limit.begin() + part.last);
    uint64_t done = 0;
    for (int32_t start = 0; start < widest; start += ops.columns) {
        done += multiply_panel(part, columns.panel(start / ops.columns));
        take_best(part, start, limit, sign, best);
    }
    multiply_adds += done;
}

void RowBlock::multiply(int64_t index, const Columns & columns, int32_t first_panel, float * out, int64_t stride,
                        Count & multiply_adds) {
    const Part part = part_at(index);
    uint64_t done = 0;
    const int32_t wanted = columns.count_before(token(part.last - 1) + 1);
    for (int32_t panel = first_panel; panel * ops.columns < wanted; panel++) {
        done += multiply_panel(part, columns.panel(panel));
        for (int64_t i = part.first; i < part.last; i++) {
            std::copy_n(part.tile + ((i - part.first) * ops.columns), ops.columns,
                        out + (i * stride) + (int64_t{ panel - first_panel } * ops.columns));
        }
    }
    multiply_adds += done;
}

void RowBlock::copy_to(Columns & columns, std::span<const int64_t> chosen, Team & team) const {
    const int64_t first = columns.count();
    std::vector<int32_t> added;
    for (const int64_t i : chosen) {
        added.push_back(token(i));
    }
    columns.add_room(added);
    // By ranges of values, not by rows: neighbouring columns then fill the same cache lines.
    team.run(ceil_div(size, segment), [&](int64_t range) {
        const int64_t values = std::min(segment, size - (range * segment));
        for (size_t i = 0; i < chosen.size(); i++) {
            const float * from = row_at(chosen[i]) + (range * row_step());
            float * to = columns.values_of(first + static_cast<int64_t>(i)) + (range * segment * ops.columns);
            for (int64_t k = 0; k < values; k++) {
                to[k * ops.columns] = from[k];
            }
        }
    });
}

} // namespace cascade::cover
