// The joint method on a living cache: an exact window, a cover that speaks for the past, and a gate that opens what a
// query wants to see for itself. docs/method.md has the mathematics.
#pragma once

#include "attend/joint/audit.h"
#include "attend/joint/few_rows.h"
#include "attend/joint/many_rows.h"

#include <span>

namespace cascade::attend {

// Shared by all layers of a context, which are computed one after the other.
class JointAttention {
  public:
    // `audit`: one query in so many is computed exactly as well; 0: none. `rows_together`: see ManyRows.
    explicit JointAttention(int64_t audit = 0, int64_t rows_together = rows_of_group)
        : many(rows_together), auditor(audit) {}

    // Why an attention can't be computed this way; nullptr: it can.
    static const char * objection(const Attention & attention);

    // A computation begins: masks may be others than before.
    void begin() { mask_read = nullptr; }

    enum class Result : uint8_t {
        done,
        left,   // nothing is covered yet: exact attention reads no more
        failed, // out of memory; the output is unfinished
    };

    // Computes part `part` of `parts`, all at once on as many threads; all get the same result. `indexes`: one for each
    // stream. `epsilon`: what a query's error may be, as a share of its values' size, before epsilon_for.
    Result attend(const Attention & attention, std::span<cover::LayerIndex * const> indexes, float epsilon, int part,
                  int parts);

    const JointCounts & counts() const { return sums; }
    const AuditSums & audited() const { return auditor.sums(); }
    int64_t uncovered() const { return left_alone; } // calls that ended as `left`
    const PhaseTimes & times() const { return spent; }

  private:
    void prepare(const Attention & attention, std::span<cover::LayerIndex * const> indexes);
    static void find_cover(const Attention & attention, std::span<cover::LayerIndex * const> indexes, CoveredRun & run);
    void record(const Attention & attention, const CoveredRun & run, int parts) noexcept;

    Barrier barrier;
    const char * mask_read = nullptr; // that the runs were found in
    int64_t tokens_read = 0;
    std::vector<QueryRun> query_runs;
    std::vector<CoveredRun> runs;
    Result prepared = Result::failed;
    bool room = true; // for the run that is next: not in `prepared`, which a slow thread may still have to read
    FewRows few;
    ManyRows many;
    Audit auditor;
    JointCounts sums;
    int64_t left_alone = 0;
    PhaseTimes spent;
};

} // namespace cascade::attend
