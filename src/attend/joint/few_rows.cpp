#include "attend/joint/few_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cascade::attend {

namespace {

constexpr int64_t speakers_step = 32; // a multiple of every kernel's columns
constexpr float nothing = -std::numeric_limits<float>::infinity();

// Rows of floats that the caller owns, as the kernels read them.
Rows float_rows(const float * data, int64_t size) {
    Rows rows;
    rows.base = reinterpret_cast<const char *>(data);
    rows.row_stride = static_cast<size_t>(size) * sizeof(float);
    rows.format = Format::f32;
    return rows;
}

// Logits become weights relative to `reference`, whatever the largest is; n is padded with hidden ones.
void weigh_against(const Kernel & ops, float reference, int64_t n, float * logits) {
    RowSoftmax row = { reference, 0.0F };
    const ScoreTerms none;
    float unused = 0.0F;
    ops.weigh(&none, 1, n, logits, n, &row, &unused);
    if (row.largest > reference) {
        const float back = std::exp2(row.largest - reference);
        for (int64_t i = 0; i < n; i++) {
            logits[i] *= back;
        }
    }
}

} // namespace

void FewRows::prepare_part(Part & own, const Attention & a, int64_t most_cells) {
    own.limits.resize(static_cast<size_t>(rows));
    own.scratch.need(a, rows);
    own.floats.need(tokens_of_few * round_up(std::max(a.key_size, a.value_size), row_padding));
    own.heads.resize(static_cast<size_t>(a.kv_heads));
    own.gates.resize(static_cast<size_t>(a.kv_heads * rows));
    own.counts = {};
    for (OfHead & of : own.heads) {
        of.past.resize(static_cast<size_t>(rows));
        of.near.start(rows, a.value_size);
        of.rest.start(rows, a.value_size);
        of.opened.resize(static_cast<size_t>(most_cells));
        of.opened_weights.need(rows * most_cells);
        of.opened_of.resize(static_cast<size_t>(clusters));
        of.closed_of.resize(static_cast<size_t>(clusters));
        of.opened_sum.resize(static_cast<size_t>(rows * clusters));
    }
}

void FewRows::prepare(const Attention & a, const CoveredRun & run, int parts) {
    rows = run.rows(a);
    cells = run.cover->cells();
    clusters = round_up(run.cover->clusters(), speakers_step);
    const auto all_rows = static_cast<double>(a.kv_heads * rows);
    seen = {};
    seen.rows = a.kv_heads * rows;
    seen.covered = all_rows * static_cast<double>(run.cover->covered());
    seen.exact = all_rows * static_cast<double>(run.exact.size());
    queries.resize(static_cast<size_t>(a.kv_heads));
    rounded.resize(static_cast<size_t>(a.kv_heads * rows * a.key_size));
    rough_queries.resize(static_cast<size_t>(a.kv_heads * rows));
    rough.need(a.kv_heads * rows * cells);
    speakers.need(a.kv_heads * rows * clusters);
    if (static_cast<int>(part_of.size()) < parts) {
        part_of.resize(static_cast<size_t>(parts));
    }
    const int64_t most_cells = round_up(cells / parts, tile_columns) + (2 * tile_columns);
    for (int part = 0; part < parts; part++) {
        prepare_part(part_of[static_cast<size_t>(part)], a, most_cells);
    }
    for (int64_t head = 0; head < a.kv_heads; head++) {
        QueryRows & of = queries[static_cast<size_t>(head)];
        of.fill(a, head, run.queries->stream, run.queries->first, run.queries->count, QueryLayout::rows);
        for (int64_t row = 0; row < rows; row++) {
            const auto at = static_cast<size_t>((head * rows) + row);
            rough_queries[at] =
                run.rough->round(head, of.row(row), 1.0F, rounded.data() + (at * static_cast<size_t>(a.key_size)));
        }
    }
}

void FewRows::attend(const Attention & a, const CoveredRun & run, float epsilon, Barrier & barrier, int part, int parts,
                     PhaseTimes * times) {
    score_past(a, run, part, parts);
    end_phase(times, Phase::rough);
    score_window(a, run, part, parts);
    barrier.wait(parts);
    end_phase(times, Phase::window);
    open(a, run, epsilon, part, parts);
    barrier.wait(parts);
    end_phase(times, Phase::opening);
    speak(a, run, part, parts);
    barrier.wait(parts);
    add_opened(a, run, part);
    barrier.wait(parts);
    merge(part, parts);
    end_phase(times, Phase::past);
}

// All cells roughly, and all clusters as if nothing were opened.
void FewRows::score_past(const Attention & a, const CoveredRun & run, int part, int parts) {
    Part & own = part_of[static_cast<size_t>(part)];
    const Share tiles = Share::of(cells / cover::cells_of_tile, tile_columns / cover::cells_of_tile, part, parts);
    const Share spoken = Share::of(clusters, speakers_step, part, parts);
    const int64_t first = tiles.first * cover::cells_of_tile;
    const int64_t count = tiles.count() * cover::cells_of_tile;
    for (int64_t head = 0; head < a.kv_heads; head++) {
        OfHead & of = own.heads[static_cast<size_t>(head)];
        const QueryRows & query = queries[static_cast<size_t>(head)];
        cover::rough_logits(run.rough->tiles(head), tiles.first, tiles.last,
                            { rough_queries.data() + (head * rows), static_cast<size_t>(rows) }, rough_row(head, 0),
                            cells);
        for (int64_t row = 0; row < rows; row++) {
            RowSoftmax & past = of.past[static_cast<size_t>(row)];
            past = { nothing, 0.0F };
            if (count > 0) {
                ScoreTerms terms;
                terms.bias = run.cover->closed() + first;
                float unused = 0.0F;
                query.ops().weigh(&terms, 1, count, rough_row(head, row) + first, count, &past, &unused);
            }
        }
        const int64_t last = std::min(spoken.last, run.cover->clusters());
        if (last > spoken.first) {
            dot_rows(float_rows(run.cover->key_sums(head), a.key_size), 0, 0, a.key_size,
                     { nullptr, spoken.first, last - spoken.first }, query.row(0), rows, query.step(),
                     speaker_row(head, 0) + spoken.first, clusters, own.floats);
        }
    }
}

void FewRows::score_window(const Attention & a, const CoveredRun & run, int part, int parts) {
    Part & own = part_of[static_cast<size_t>(part)];
    const Share near = Share::of(static_cast<int64_t>(run.exact.size()), row_padding, part, parts);
    for (int64_t head = 0; head < a.kv_heads; head++) {
        attend_tokens(queries[static_cast<size_t>(head)], { run.exact.data() + near.first, 0, near.count() },
                      run.masked ? Masking::by_token : Masking::none, own.heads[static_cast<size_t>(head)].near,
                      own.scratch);
    }
}

FewRows::Gate FewRows::gate_of(int64_t head, int64_t row, float epsilon, int parts) const {
    float largest = nothing;
    for (int part = 0; part < parts; part++) {
        const OfHead & of = part_of[static_cast<size_t>(part)].heads[static_cast<size_t>(head)];
        largest = std::max({ largest, of.past[static_cast<size_t>(row)].largest, of.near.row(row).largest });
    }
    float past = 0.0F;
    float near = 0.0F;
    for (int part = 0; part < parts; part++) {
        const OfHead & of = part_of[static_cast<size_t>(part)].heads[static_cast<size_t>(head)];
        const RowSoftmax & far = of.past[static_cast<size_t>(row)];
        past += far.sum * weight_below(far.largest, largest);
        near += of.near.row(row).sum * weight_below(of.near.row(row).largest, largest);
    }
    return { largest, opening_threshold(past, near, largest, epsilon) };
}

void FewRows::find_opened(int64_t head, OfHead & of, Part & own, const Share & share) {
    for (int64_t row = 0; row < rows; row++) {
        const Gate & gate = own.gates[static_cast<size_t>((head * rows) + row)];
        const RowSoftmax & past = of.past[static_cast<size_t>(row)];
        const bool none = past.largest == nothing || past.largest < gate.threshold;
        // never 0, which is what cells weigh that are not covered
        own.limits[static_cast<size_t>(row)] =
            none ? std::numeric_limits<float>::infinity()
                 : std::max(std::exp2(gate.threshold - past.largest), std::numeric_limits<float>::min());
    }
    of.opened_count = queries[static_cast<size_t>(head)].ops().find_at_least(
        own.limits.data(), rows, share.count(), rough_row(head, 0) + share.first, cells,
        static_cast<int32_t>(share.first), of.opened.data());
}

// Opened tokens' own logits, and what their clusters lose by them.
void FewRows::read_opened(const Attention & a, const CoveredRun & run, int64_t head, Part & own) {
    OfHead & of = own.heads[static_cast<size_t>(head)];
    const QueryRows & query = queries[static_cast<size_t>(head)];
    const int64_t step = round_up(of.opened_count, tile_columns);
    std::fill(of.opened_of.begin(), of.opened_of.begin() + clusters, 0.0F);
    std::fill(of.opened_sum.begin(), of.opened_sum.begin() + (rows * clusters), 0.0F);
    dot_rows(a.key, head, run.queries->stream, a.key_size, { of.opened.data(), 0, of.opened_count }, query.row(0), rows,
             query.step(), of.opened_weights.get(), step, own.floats);
    for (int64_t i = 0; i < of.opened_count; i++) {
        const int32_t cluster = run.cover->cluster_of(of.opened[static_cast<size_t>(i)]);
        of.opened_of[static_cast<size_t>(cluster)] += 1.0F;
        for (int64_t row = 0; row < rows; row++) {
            of.opened_sum[static_cast<size_t>((row * clusters) + cluster)] += of.opened_weights.get()[(row * step) + i];
        }
    }
    for (int64_t row = 0; row < rows; row++) {
        float * logits = of.opened_weights.get() + (row * step);
        std::fill(logits + of.opened_count, logits + step, nothing);
        const Gate & gate = own.gates[static_cast<size_t>((head * rows) + row)];
        weigh_against(query.ops(), gate.reference, step, logits);
    }
}

void FewRows::open(const Attention & a, const CoveredRun & run, float epsilon, int part, int parts) {
    Part & own = part_of[static_cast<size_t>(part)];
    const Share tiles = Share::of(cells / cover::cells_of_tile, tile_columns / cover::cells_of_tile, part, parts);
    const Share share = { tiles.first * cover::cells_of_tile, tiles.last * cover::cells_of_tile };
    for (int64_t head = 0; head < a.kv_heads; head++) {
        for (int64_t row = 0; row < rows; row++) {
            own.gates[static_cast<size_t>((head * rows) + row)] = gate_of(head, row, epsilon, parts);
        }
        OfHead & of = own.heads[static_cast<size_t>(head)];
        find_opened(head, of, own, share);
        read_opened(a, run, head, own);
        own.counts.opened += static_cast<double>(of.opened_count * rows);
    }
}

// How many members of each cluster stayed closed, and by that what a closed one weighs.
void FewRows::weigh_speakers(const CoveredRun & run, int64_t head, Part & own, const Share & share, int parts) {
    OfHead & of = own.heads[static_cast<size_t>(head)];
    const auto others = std::span(part_of).first(static_cast<size_t>(parts));
    for (int64_t c = share.first; c < share.last; c++) {
        float closed = c < run.cover->clusters() ? static_cast<float>(run.cover->count(c)) : 0.0F;
        for (const Part & other : others) {
            closed -= other.heads[static_cast<size_t>(head)].opened_of[static_cast<size_t>(c)];
        }
        of.closed_of[static_cast<size_t>(c)] = closed;
        own.counts.speakers += closed > 0.0F ? static_cast<double>(rows) : 0.0;
    }
    for (int64_t row = 0; row < rows; row++) {
        float * logits = speaker_row(head, row);
        for (int64_t c = share.first; c < share.last; c++) {
            float sum = logits[c];
            for (const Part & other : others) {
                sum -= other.heads[static_cast<size_t>(head)].opened_sum[static_cast<size_t>((row * clusters) + c)];
            }
            const float closed = of.closed_of[static_cast<size_t>(c)];
            logits[c] = closed > 0.0F ? sum / closed : nothing;
        }
        const float reference = own.gates[static_cast<size_t>((head * rows) + row)].reference;
        weigh_against(queries[static_cast<size_t>(head)].ops(), reference, share.count(), logits + share.first);
        of.rest.row(row) = { reference, 0.0F };
        for (int64_t c = share.first; c < share.last; c++) {
            of.rest.row(row).sum += of.closed_of[static_cast<size_t>(c)] * logits[c];
        }
    }
}

void FewRows::speak(const Attention & a, const CoveredRun & run, int part, int parts) {
    Part & own = part_of[static_cast<size_t>(part)];
    const Share share = Share::of(clusters, speakers_step, part, parts);
    for (int64_t head = 0; head < a.kv_heads; head++) {
        weigh_speakers(run, head, own, share, parts);
        const int64_t last = std::min(share.last, run.cover->clusters());
        if (last > share.first) {
            OfHead & of = own.heads[static_cast<size_t>(head)];
            add_rows(float_rows(run.cover->value_sums(head), a.value_size), 0, 0, a.value_size,
                     { nullptr, share.first, last - share.first }, speaker_row(head, 0) + share.first, rows, clusters,
                     of.rest.out(0), of.rest.width(), own.floats);
        }
    }
}

void FewRows::add_opened(const Attention & a, const CoveredRun & run, int part) {
    Part & own = part_of[static_cast<size_t>(part)];
    for (int64_t head = 0; head < a.kv_heads; head++) {
        OfHead & of = own.heads[static_cast<size_t>(head)];
        const int64_t step = round_up(of.opened_count, tile_columns);
        for (int64_t row = 0; row < rows; row++) {
            float * weights = of.opened_weights.get() + (row * step);
            const float * closed = speaker_row(head, row);
            float sum = 0.0F;
            for (int64_t i = 0; i < of.opened_count; i++) {
                sum += weights[i];
                weights[i] -= closed[run.cover->cluster_of(of.opened[static_cast<size_t>(i)])];
            }
            of.rest.row(row).sum += sum;
        }
        add_rows(a.value, head, run.queries->stream, a.value_size, { of.opened.data(), 0, of.opened_count },
                 of.opened_weights.get(), rows, step, of.rest.out(0), of.rest.width(), own.floats);
    }
}

void FewRows::merge(int part, int parts) {
    for (auto head = static_cast<size_t>(part); head < queries.size(); head += static_cast<size_t>(parts)) {
        RunningSoftmax & all = part_of[0].heads[head].near;
        for (int other = 0; other < parts; other++) {
            if (other > 0) {
                all.merge(part_of[static_cast<size_t>(other)].heads[head].near);
            }
            all.merge(part_of[static_cast<size_t>(other)].heads[head].rest);
        }
        all.finish(queries[head]);
    }
}

std::vector<std::vector<int32_t>> FewRows::opened(int parts) const {
    std::vector<std::vector<int32_t>> lists(queries.size());
    for (size_t head = 0; head < lists.size(); head++) {
        for (const Part & own : std::span(part_of).first(static_cast<size_t>(parts))) {
            const OfHead & of = own.heads[head];
            lists[head].insert(lists[head].end(), of.opened.begin(), of.opened.begin() + of.opened_count);
        }
    }
    return lists;
}

JointCounts FewRows::counts(int parts) const {
    JointCounts sum;
    for (int part = 0; part < parts; part++) {
        sum += part_of[static_cast<size_t>(part)].counts;
    }
    sum += seen;
    return sum;
}

} // namespace cascade::attend
