#include "attend/joint/joint_attention.h"

#include "attend/kernels/exact.h"
#include "cover/index/marked.h"

namespace cascade::attend {

namespace {

template <Format format>
void convert(const void * stored, float * values, int64_t n) {
    kernel().to_float(format, stored, n, values);
}

// The same numbers as the engine's conversion gives, sooner.
Rows quickly_read(Rows rows) {
    if (rows.format == Format::f16) {
        rows.to_float = convert<Format::f16>;
    } else if (rows.format == Format::bf16) {
        rows.to_float = convert<Format::bf16>;
    }
    return rows;
}

cover::Cells cells_of(const Attention & a, int64_t stream) {
    cover::Cells cells;
    cells.key = quickly_read(a.key);
    cells.value = quickly_read(a.value);
    cells.stream = stream;
    cells.kv_heads = a.kv_heads;
    cells.key_size = a.key_size;
    cells.value_size = a.value_size;
    return cells;
}

// In one layer after the other mostly the same.
void list_exact(const QueryRun & queries, const cover::CellCover & cover, CoveredRun & run) {
    const std::span<const uint8_t> marks(cover.covers(), static_cast<size_t>(cover.cells()));
    if (!marks.empty() && std::equal(marks.begin(), marks.end(), run.exact_beside.begin(), run.exact_beside.end())) {
        return;
    }
    run.exact_beside.assign(marks.begin(), marks.end());
    run.exact.clear();
    run.exact.reserve(queries.by_some.size());
    run.masked = false;
    cover::for_each_marked(queries.by_some.data(), static_cast<int64_t>(queries.by_some.size()), cover.covers(),
                           cover.cells(), [&](int64_t cell) {
                               run.exact.push_back(static_cast<int32_t>(cell));
                               run.masked = run.masked || queries.by_all[static_cast<size_t>(cell)] == 0;
                           });
}

JointCounts with_bytes(JointCounts counts, const Attention & a) {
    const auto row = static_cast<double>(2 * (a.key_size + a.value_size));
    const int64_t rough_key = (a.key_size / 2) + static_cast<int64_t>(sizeof(float));
    const auto rough = static_cast<double>(rough_key);
    counts.bytes = ((counts.opened + counts.speakers) * row) + (counts.covered * rough);
    counts.dense_bytes = counts.covered * row;
    return counts;
}

bool is_few(const Attention & a, const CoveredRun & run) { return run.rows(a) <= most_few_rows; }

} // namespace

const char * JointAttention::objection(const Attention & a) {
    if (a.soft_cap != 0.0F) {
        return "logits are capped";
    }
    if (a.max_bias != 0.0F) {
        return "logits depend on distance (ALiBi)";
    }
    if (!has_plain_mask(a)) {
        return "mask can't be read";
    }
    if (a.value.value_stride != 0) {
        return "values are stored transposed: run with flash attention on";
    }
    return cover::LayerIndex::fits(cells_of(a, 0)) ? nullptr : "keys are not a multiple of 8 values";
}

void JointAttention::find_cover(const Attention & a, std::span<cover::LayerIndex * const> indexes, CoveredRun & run) {
    cover::LayerIndex & index = *indexes[static_cast<size_t>(run.queries->stream)];
    run.cover = &index.cover_for(run.queries->seen(), cells_of(a, run.queries->stream));
    run.rough = &index.rough_keys();
    list_exact(*run.queries, *run.cover, run);
}

void JointAttention::prepare(const Attention & a, std::span<cover::LayerIndex * const> indexes) {
    if (mask_read == nullptr || mask_read != a.mask.base || tokens_read != a.tokens) {
        find_query_runs(a, query_runs);
        mask_read = a.mask.base;
        tokens_read = a.tokens;
        std::for_each(runs.begin(), runs.end(), [](CoveredRun & run) { run.exact_beside.clear(); });
    }
    runs.resize(query_runs.size());
    bool covered = false;
    for (size_t i = 0; i < runs.size(); i++) {
        runs[i].queries = &query_runs[i];
        find_cover(a, indexes, runs[i]);
        covered = covered || runs[i].cover->covered() > 0;
    }
    prepared = covered ? Result::done : Result::left;
    left_alone += covered ? 0 : 1;
}

void JointAttention::record(const Attention & a, const CoveredRun & run, int parts) noexcept {
    const bool by_few = is_few(a, run);
    sums += with_bytes(by_few ? few.counts(parts) : many.counts(), a);
    if (auditor.wanted()) {
        try {
            if (by_few) {
                const std::vector<std::vector<int32_t>> opened = few.opened(parts);
                auditor.check(a, run, { opened, a.kv_heads, run.queries->count });
            } else {
                auditor.check(a, run, many.opened());
            }
        } catch (...) {
            return; // out of memory: this one isn't looked at
        }
    }
}

JointAttention::Result JointAttention::attend(const Attention & a, std::span<cover::LayerIndex * const> indexes,
                                              float epsilon, int part, int parts) {
    if (part == 0) {
        spent.start();
        try {
            prepare(a, indexes);
        } catch (...) {
            prepared = Result::failed;
        }
        spent.end(Phase::indexing);
    }
    barrier.wait(parts);
    if (prepared != Result::done) {
        return prepared;
    }
    for (CoveredRun & run : runs) {
        const bool by_few = is_few(a, run);
        if (part == 0) {
            room = true;
            try {
                if (runs.size() > indexes.size()) { // another run of the stream may have changed the cover, or ended it
                    find_cover(a, indexes, run);
                }
                by_few ? few.prepare(a, run, parts) : many.prepare(a, run, parts);
            } catch (...) {
                room = false;
            }
        }
        barrier.wait(parts);
        if (!room) {
            return Result::failed;
        }
        PhaseTimes * times = part == 0 ? &spent : nullptr;
        end_phase(times, Phase::preparing);
        if (by_few) {
            few.attend(a, run, epsilon_for(epsilon, run.cover->covered(), run.rows(a)), barrier, part, parts, times);
        } else if (!many.attend(a, run, epsilon, barrier, part, parts, times)) {
            return Result::failed;
        }
        barrier.wait(parts);
        if (part == 0) {
            record(a, run, parts);
        }
    }
    return Result::done;
}

} // namespace cascade::attend
