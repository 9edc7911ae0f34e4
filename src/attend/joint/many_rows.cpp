#include "attend/joint/many_rows.h"

#include <algorithm>

namespace cascade::attend {

int64_t ManyRows::queries_together(const Attention & a, int64_t rows_together) {
    const int64_t group = a.heads / a.kv_heads;
    return std::max(queries_of_block, round_up(rows_together / group, queries_of_block));
}

void ManyRows::prepare(const Attention & a, const CoveredRun & run, int parts) {
    heads = a.kv_heads;
    queries_of_group = queries_together(a, rows_wanted);
    const int64_t groups = (run.queries->count + queries_of_group - 1) / queries_of_group;
    opened_of.resize(static_cast<size_t>(groups * heads));
    columns_of.resize(static_cast<size_t>(heads));
    for (HeadColumns & columns : columns_of) {
        columns.window.reset(static_cast<int64_t>(run.exact.size()), a.key_size, a.value_size);
    }
    if (static_cast<int>(worker_of.size()) < parts) {
        worker_of.resize(static_cast<size_t>(parts));
    }
    for (QueryGroup & worker : worker_of) {
        worker.start_counting();
    }
    next = 0;
    failed = false;
}

void ManyRows::fill_shared(const Attention & a, const CoveredRun & run, int part, int parts) {
    QueryGroup & own = worker_of[static_cast<size_t>(part)];
    const Share share = Share::of(static_cast<int64_t>(run.exact.size()), tile_columns, part, parts);
    for (int64_t head = 0; head < heads; head++) {
        HeadColumns & columns = columns_of[static_cast<size_t>(head)];
        own.fill_window(a, run, head, share, columns.window);
        if (head % parts == part) {
            own.fill_means(a, run, head, columns.means);
        }
    }
}

void ManyRows::attend_some(const Attention & a, const CoveredRun & run, float epsilon, QueryGroup & own,
                           PhaseTimes * times) {
    for (size_t item = next++; item < opened_of.size() && !failed; item = next++) {
        const int64_t head = static_cast<int64_t>(item) % heads;
        const int64_t from = static_cast<int64_t>(item) / heads * queries_of_group;
        const GroupRange range = { run.queries->first + from, std::min(queries_of_group, run.queries->count - from) };
        own.attend(a, run, columns_of[static_cast<size_t>(head)], head, range, epsilon, opened_of[item], times);
    }
}

bool ManyRows::attend(const Attention & a, const CoveredRun & run, float epsilon, Barrier & barrier, int part,
                      int parts, PhaseTimes * times) {
    try {
        fill_shared(a, run, part, parts);
    } catch (...) {
        failed = true;
    }
    barrier.wait(parts);
    if (!failed) {
        try {
            attend_some(a, run, epsilon, worker_of[static_cast<size_t>(part)], times);
        } catch (...) {
            failed = true;
        }
    }
    barrier.wait(parts);
    end_phase(times, Phase::past);
    return !failed;
}

JointCounts ManyRows::counts() const {
    JointCounts all;
    for (const QueryGroup & worker : worker_of) {
        all += worker.counts();
    }
    return all;
}

} // namespace cascade::attend
