// One query in many computed exactly as well: what the error really is, beside what was estimated and what is certain.
//
// With w a token's weight, u the weight that its cluster's speaker gives it, Z the sum of the weights used and o the
// exact output, the error is (1 / Z) * sum over closed tokens of (w - u) (v - o): docs/method.md. A rough logit r with
// its error d bounds w between 2^(r - d) and 2^(r + d), and |v - o| <= |v| + the longest value: that is the bound. The
// estimate takes the terms' signs for random: the root of the sum of squared shares, times the values' length.
#pragma once

#include "attend/joint/opened_tokens.h"
#include "attend/joint/work.h"

namespace cascade::attend {

struct AuditSums {
    int64_t rows = 0;
    int64_t above_bound = 0; // must stay 0
    double observed = 0.0;   // sums of lengths
    double estimated = 0.0;
    double bound = 0.0;
    double output = 0.0;
    double worst_of_bound = 0.0; // largest observed / bound
};

class Audit {
  public:
    explicit Audit(int64_t one_in_so_many) : one_in(one_in_so_many) {}

    bool wanted() const { return one_in > 0; }

    // Looks at those of a run's queries whose turn it is. May throw std::bad_alloc.
    void check(const Attention & attention, const CoveredRun & run, const OpenedTokens & opened);

    const AuditSums & sums() const { return all; }

  private:
    int64_t one_in = 0; // 0: none
    int64_t seen = 0;   // queries of all runs
    AuditSums all;
};

} // namespace cascade::attend
