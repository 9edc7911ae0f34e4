#include "attend/joint/many_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cascade::attend {

namespace {

constexpr int64_t queries_of_block = 32;
constexpr int64_t narrow = row_padding; // values of a column whose values nobody wants

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

void ManyRows::prepare(const Attention & a, const CoveredRun & run, int parts) {
    cells = run.cover->cells();
    counted = {};
    failed = false;
    const int64_t group = run.group(a);
    const int64_t rows = run.rows(a);
    blocks.resize(static_cast<size_t>((run.queries->count + queries_of_block - 1) / queries_of_block));
    for (size_t b = 0; b < blocks.size(); b++) {
        Block & block = blocks[b];
        block.first = run.queries->first + (static_cast<int64_t>(b) * queries_of_block);
        block.count = std::min(queries_of_block, run.queries->first + run.queries->count - block.first);
        block.first_row = static_cast<int64_t>(b) * queries_of_block * group;
        block.queries.fill(a, 0, run.queries->stream, block.first, block.count, QueryLayout::packs);
        block.state.start(block.queries.rows(), a.value_size);
        block.past.start(block.queries.rows(), narrow);
    }
    if (static_cast<int>(part_of.size()) < parts) {
        part_of.resize(static_cast<size_t>(parts));
    }
    for (Part & own : part_of) {
        own.fill.need(Columns::scratch_floats(a));
        own.tiles.need(a, queries_of_block * group);
        own.opened.resize(static_cast<size_t>(cells));
    }
    rounded.resize(static_cast<size_t>(rows * a.key_size));
    rough_queries.resize(static_cast<size_t>(rows));
    thresholds.resize(static_cast<size_t>(rows));
    best.resize(static_cast<size_t>(cells));
    opened_of.resize(static_cast<size_t>(a.kv_heads));
    row_values.resize(static_cast<size_t>(std::max(a.key_size, a.value_size) * parts));
    const auto clusters = static_cast<size_t>(run.cover->clusters());
    speaker_keys.resize(clusters * static_cast<size_t>(a.key_size));
    speaker_values.resize(clusters * static_cast<size_t>(std::max(a.value_size, narrow)));
    speaker_counts.resize(clusters);
    window.reset(static_cast<int64_t>(run.exact.size()), a.key_size, a.value_size);
    means.reset(run.cover->clusters(), a.key_size, narrow, Columns::Biases::all);
}

bool ManyRows::attend(const Attention & a, const CoveredRun & run, float epsilon, Barrier & barrier, int part,
                      int parts, PhaseTimes * times) {
    Part & own = part_of[static_cast<size_t>(part)];
    for (int64_t head = 0; head < a.kv_heads; head++) {
        const Share near = Share::of(static_cast<int64_t>(run.exact.size()), tile_columns, part, parts);
        if (near.count() > 0) {
            window.fill(near.first, a, head, run.queries->stream, { run.exact.data() + near.first, 0, near.count() },
                        own.fill);
        }
        if (part == parts - 1) {
            fill_mean_speakers(run, head);
        }
        barrier.wait(parts);
        for (size_t b = static_cast<size_t>(part); b < blocks.size(); b += static_cast<size_t>(parts)) {
            attend_window(a, run, head, blocks[b], own, epsilon);
        }
        barrier.wait(parts);
        end_phase(times, Phase::window);
        find_opened(run, head, part, parts);
        barrier.wait(parts);
        end_phase(times, Phase::rough);
        if (part == 0) {
            try {
                gather_opened(run, opened_of[static_cast<size_t>(head)], parts);
                fill_closed_speakers(run, a, head);
            } catch (...) {
                failed = true;
            }
        }
        barrier.wait(parts);
        if (failed) {
            return false;
        }
        const std::vector<int32_t> & opened = opened_of[static_cast<size_t>(head)];
        const Share far = Share::of(static_cast<int64_t>(opened.size()), tile_columns, part, parts);
        if (far.count() > 0) {
            past.fill(far.first, a, head, run.queries->stream, { opened.data() + far.first, 0, far.count() }, own.fill);
        }
        barrier.wait(parts);
        end_phase(times, Phase::opening);
        for (size_t b = static_cast<size_t>(part); b < blocks.size(); b += static_cast<size_t>(parts)) {
            attend_columns(blocks[b].queries, past, Masking::none, blocks[b].state, own.tiles);
            blocks[b].state.finish(blocks[b].queries);
        }
        end_phase(times, Phase::past);
    }
    return true;
}

// The mean key of each cluster, with the logarithm of its members: what the past weighs, more or less.
void ManyRows::fill_mean_speakers(const CoveredRun & run, int64_t head) {
    const int64_t clusters = run.cover->clusters();
    const auto size = static_cast<int64_t>(speaker_keys.size()) / std::max<int64_t>(1, clusters);
    for (int64_t c = 0; c < clusters; c++) {
        const auto count = static_cast<float>(run.cover->count(c));
        speaker_counts[static_cast<size_t>(c)] =
            count > 0.0F ? std::log(count) : -std::numeric_limits<float>::infinity();
        const float * sums = run.cover->key_sums(head) + (c * size);
        for (int64_t i = 0; i < size; i++) {
            speaker_keys[static_cast<size_t>((c * size) + i)] = count > 0.0F ? sums[i] / count : 0.0F;
        }
    }
    std::fill_n(speaker_values.begin(), clusters * narrow, 0.0F);
    means.fill(0, speaker_keys.data(), speaker_values.data(), clusters);
    means.set_biases(0, speaker_counts.data(), clusters);
}

void ManyRows::attend_window(const Attention & a, const CoveredRun & run, int64_t head, Block & block, Part & own,
                             float epsilon) {
    block.queries.fill(a, head, run.queries->stream, block.first, block.count, QueryLayout::packs);
    const int64_t rows = block.queries.rows();
    block.state.start(rows, a.value_size);
    block.past.start(rows, narrow);
    attend_columns(block.queries, window, run.masked ? Masking::by_token : Masking::none, block.state, own.tiles);
    attend_columns(block.queries, means, Masking::none, block.past, own.tiles);
    for (int64_t row = 0; row < rows; row++) {
        thresholds[static_cast<size_t>(block.first_row + row)] =
            threshold_of(block.state.row(row), block.past.row(row), epsilon);
    }
    const auto thread = static_cast<size_t>(&own - part_of.data());
    float * values = row_values.data() + (thread * static_cast<size_t>(std::max(a.key_size, a.value_size)));
    for (int64_t row = 0; row < rows; row++) {
        const int64_t at = block.first_row + row;
        unpack_row(block.queries, row, a.key_size, values);
        rough_queries[static_cast<size_t>(at)] =
            run.rough->round(head, values, 1.0F, rounded.data() + (at * a.key_size));
    }
}

void ManyRows::find_opened(const CoveredRun & run, int64_t head, int part, int parts) {
    Part & own = part_of[static_cast<size_t>(part)];
    const Share tiles = Share::of(cells / cover::cells_of_tile, 4, part, parts);
    cover::rough_best(run.rough->tiles(head), tiles.first, tiles.last, rough_queries, thresholds.data(), best.data());
    own.opened_count = 0;
    for (int64_t cell = tiles.first * cover::cells_of_tile; cell < tiles.last * cover::cells_of_tile; cell++) {
        own.opened[static_cast<size_t>(own.opened_count)] = static_cast<int32_t>(cell);
        own.opened_count += best[static_cast<size_t>(cell)] >= 0.0F && run.cover->has(cell) ? 1 : 0;
    }
}

void ManyRows::gather_opened(const CoveredRun & run, std::vector<int32_t> & opened, int parts) {
    opened.clear();
    for (const Part & own : std::span(part_of).first(static_cast<size_t>(parts))) {
        opened.insert(opened.end(), own.opened.begin(), own.opened.begin() + own.opened_count);
    }
    const auto rows = static_cast<double>(rough_queries.size());
    counted.opened += rows * static_cast<double>(opened.size());
    counted.covered += rows * static_cast<double>(run.cover->covered());
    counted.exact += rows * static_cast<double>(run.exact.size());
    counted.rows += static_cast<int64_t>(rough_queries.size());
}

// Sums of what stayed closed.
void ManyRows::take_opened(const CoveredRun & run, const Attention & a, int64_t head) {
    const int64_t clusters = run.cover->clusters();
    std::copy_n(run.cover->key_sums(head), clusters * a.key_size, speaker_keys.begin());
    std::copy_n(run.cover->value_sums(head), clusters * a.value_size, speaker_values.begin());
    for (int64_t c = 0; c < clusters; c++) {
        speaker_counts[static_cast<size_t>(c)] = static_cast<float>(run.cover->count(c));
    }
    const auto take = [&](const Rows & rows, int64_t cell, int64_t size, float * sums) {
        rows.read(cell, head, run.queries->stream, size, row_values.data());
        for (int64_t i = 0; i < size; i++) {
            sums[i] -= row_values[static_cast<size_t>(i)];
        }
    };
    for (const int32_t cell : opened_of[static_cast<size_t>(head)]) {
        const int64_t c = run.cover->cluster_of(cell);
        take(a.key, cell, a.key_size, speaker_keys.data() + (c * a.key_size));
        take(a.value, cell, a.value_size, speaker_values.data() + (c * a.value_size));
        speaker_counts[static_cast<size_t>(c)] -= 1.0F;
    }
}

// Their means, for the clusters that have somebody left to speak for.
void ManyRows::fill_closed_speakers(const CoveredRun & run, const Attention & a, int64_t head) {
    take_opened(run, a, head);
    const int64_t clusters = run.cover->clusters();
    int64_t speaking = 0;
    for (int64_t c = 0; c < clusters; c++) {
        const float count = speaker_counts[static_cast<size_t>(c)];
        if (count < 0.5F) {
            continue;
        }
        for (int64_t i = 0; i < a.key_size; i++) {
            speaker_keys[static_cast<size_t>((speaking * a.key_size) + i)] =
                speaker_keys[static_cast<size_t>((c * a.key_size) + i)] / count;
        }
        for (int64_t i = 0; i < a.value_size; i++) {
            speaker_values[static_cast<size_t>((speaking * a.value_size) + i)] =
                speaker_values[static_cast<size_t>((c * a.value_size) + i)] / count;
        }
        speaker_counts[static_cast<size_t>(speaking)] = std::log(count);
        speaking++;
    }
    const auto tokens = static_cast<int64_t>(opened_of[static_cast<size_t>(head)].size());
    counted.speakers += static_cast<double>(rough_queries.size()) * static_cast<double>(speaking);
    past.reset(tokens + speaking, a.key_size, a.value_size, Columns::Biases::all);
    past.fill(tokens, speaker_keys.data(), speaker_values.data(), speaking);
    past.set_biases(tokens, speaker_counts.data(), speaking);
}

} // namespace cascade::attend
