// Attention on a cover for many query rows, as in reading a prompt. Queries are taken in groups, and threads take a
// group and KV head after the other: what is opened for one group need not be read by another, and nobody waits.
#pragma once

#include "attend/joint/opened_tokens.h"
#include "attend/joint/query_group.h"
#include "attend/kernels/barrier.h"

#include <atomic>
#include <vector>

namespace cascade::attend {

constexpr int64_t rows_of_group = 384; // more or less: whole blocks of queries

class ManyRows {
  public:
    // `rows_together`: of a group.
    explicit ManyRows(int64_t rows_together) : rows_wanted(rows_together) {}

    // Queries of a group.
    static int64_t queries_together(const Attention & attention, int64_t rows_together);

    // Makes room. By one thread, before the others; may throw std::bad_alloc.
    void prepare(const Attention & attention, const CoveredRun & run, int parts);

    // Computes the run's outputs. By all threads at once. false, to all of them: out of memory.
    bool attend(const Attention & attention, const CoveredRun & run, float epsilon, Barrier & barrier, int part,
                int parts, PhaseTimes * times);

    // In the last run.
    OpenedTokens opened() const { return { opened_of, heads, queries_of_group }; }
    JointCounts counts() const;

  private:
    void fill_shared(const Attention & attention, const CoveredRun & run, int part, int parts);
    void attend_some(const Attention & attention, const CoveredRun & run, float epsilon, QueryGroup & own,
                     PhaseTimes * times);

    const int64_t rows_wanted;
    int64_t heads = 0;
    int64_t queries_of_group = 0;
    std::vector<HeadColumns> columns_of;         // by KV head
    std::vector<QueryGroup> worker_of;           // by thread
    std::vector<std::vector<int32_t>> opened_of; // by group, then KV head
    std::atomic<size_t> next{ 0 };               // group and head to be taken
    std::atomic<bool> failed{ false };
};

} // namespace cascade::attend
