#include "attend/joint/query_group.h"

#include <algorithm>

namespace cascade::attend {

namespace {

// Row r of a block of queries, out of its pack.
void unpack_row(const QueryRows & queries, int64_t row, int64_t size, float * out) {
    const int64_t pack_rows = queries.ops().rows;
    const float * pack = queries.pack(row / pack_rows) + (row % pack_rows);
    for (int64_t i = 0; i < size; i++) {
        out[i] = pack[i * pack_rows];
    }
}

float threshold_of(const RowSoftmax & near, const RowSoftmax & past, float epsilon) {
    const float largest = std::max(near.largest, past.largest);
    return opening_threshold(past.sum * weight_below(past.largest, largest),
                             near.sum * weight_below(near.largest, largest), largest, epsilon);
}

} // namespace

void QueryGroup::fill_window(const Attention & a, const CoveredRun & run, int64_t head, const Share & share,
                             Columns & window) {
    if (share.count() > 0) {
        fill.need(Columns::scratch_floats(a));
        window.fill(share.first, a, head, run.queries->stream, { run.exact.data() + share.first, 0, share.count() },
                    fill);
    }
}

void QueryGroup::attend(const Attention & a, const CoveredRun & run, const HeadColumns & columns, int64_t head,
                        GroupRange range, float epsilon, std::vector<int32_t> & opened, PhaseTimes * times) {
    const int64_t group = run.group(a);
    const int64_t rows = range.count * group;
    const float own_epsilon = epsilon_for(epsilon, run.cover->covered(), rows);
    const auto used = static_cast<size_t>((range.count + queries_of_block - 1) / queries_of_block);
    blocks.resize(std::max(blocks.size(), used));
    tiles.need(a, queries_of_block * group);
    rounded.resize(static_cast<size_t>(rows * a.key_size));
    rough_queries.resize(static_cast<size_t>(rows));
    thresholds.resize(static_cast<size_t>(rows));
    row_values.resize(static_cast<size_t>(a.key_size));
    for (size_t b = 0; b < used; b++) {
        const int64_t first = static_cast<int64_t>(b) * queries_of_block;
        blocks[b].queries.fill(a, head, run.queries->stream, range.first + first,
                               std::min(queries_of_block, range.count - first), QueryLayout::packs);
        attend_window(a, run, columns, blocks[b], own_epsilon, first * group);
    }
    end_phase(times, Phase::window);
    find_opened(run, head, rows, opened);
    end_phase(times, Phase::rough);
    const int64_t speakers = means.fill_closed(run, a, head, opened, past);
    fill.need(Columns::scratch_floats(a));
    past.fill(0, a, head, run.queries->stream, { opened.data(), 0, static_cast<int64_t>(opened.size()) }, fill);
    end_phase(times, Phase::opening);
    for (size_t b = 0; b < used; b++) {
        attend_columns(blocks[b].queries, past, Masking::none, blocks[b].state, tiles);
        blocks[b].state.finish(blocks[b].queries);
    }
    count(run, rows, static_cast<int64_t>(opened.size()), speakers);
    end_phase(times, Phase::past);
}

void QueryGroup::attend_window(const Attention & a, const CoveredRun & run, const HeadColumns & columns, Block & block,
                               float epsilon, int64_t first_row) {
    const int64_t rows = block.queries.rows();
    block.state.start(rows, a.value_size);
    past_mass.start(rows, row_padding);
    attend_columns(block.queries, columns.window, run.masked ? Masking::by_token : Masking::none, block.state, tiles);
    attend_columns(block.queries, columns.means, Masking::none, past_mass, tiles);
    for (int64_t row = 0; row < rows; row++) {
        const int64_t at = first_row + row;
        thresholds[static_cast<size_t>(at)] = threshold_of(block.state.row(row), past_mass.row(row), epsilon);
        unpack_row(block.queries, row, a.key_size, row_values.data());
        rough_queries[static_cast<size_t>(at)] =
            run.rough->round(block.queries.kv_head(), row_values.data(), 1.0F, rounded.data() + (at * a.key_size));
    }
}

void QueryGroup::find_opened(const CoveredRun & run, int64_t head, int64_t rows, std::vector<int32_t> & opened) {
    const int64_t cells = run.cover->cells();
    best.resize(static_cast<size_t>(cells));
    cover::rough_best(run.rough->tiles(head), 0, cells / cover::cells_of_tile,
                      std::span(rough_queries).first(static_cast<size_t>(rows)), thresholds.data(), best.data());
    opened.resize(static_cast<size_t>(cells));
    size_t found = 0;
    for (int64_t cell = 0; cell < cells; cell++) {
        opened[found] = static_cast<int32_t>(cell);
        found += best[static_cast<size_t>(cell)] >= 0.0F && run.cover->has(cell) ? 1 : 0;
    }
    opened.resize(found);
}

void QueryGroup::count(const CoveredRun & run, int64_t rows, int64_t opened, int64_t speakers) {
    const auto of_rows = static_cast<double>(rows);
    counted.opened += of_rows * static_cast<double>(opened);
    counted.covered += of_rows * static_cast<double>(run.cover->covered());
    counted.exact += of_rows * static_cast<double>(run.exact.size());
    counted.speakers += of_rows * static_cast<double>(speakers);
    counted.rows += rows;
}

} // namespace cascade::attend
