// The mean key and value of what a cover's clusters speak for, as columns that are attended like tokens, each with the
// logarithm of its members added.
#pragma once

#include "attend/joint/work.h"
#include "attend/kernels/columns.h"
#include "attend/kernels/queries.h"

#include <span>
#include <vector>

namespace cascade::attend {

class ClusterMeans {
  public:
    // All may throw std::bad_alloc, for more clusters than ever before.

    // Of all members; their values are left out: what the past weighs, more or less.
    void fill_keys(const CoveredRun & run, const Attention & attention, int64_t head, Columns & columns);

    // Of the members that stay closed. They follow `opened.size()` columns, for which `columns` has room afterwards.
    // Returns how many clusters have somebody left to speak for.
    int64_t fill_closed(const CoveredRun & run, const Attention & attention, int64_t head,
                        std::span<const int32_t> opened, Columns & columns);

  private:
    void sum_closed(const CoveredRun & run, const Attention & attention, int64_t head, std::span<const int32_t> opened);
    int64_t sums_to_means(int64_t key_size, int64_t value_size);

    std::vector<float> keys; // clusters x key_size: sums, then means
    std::vector<float> values;
    std::vector<float> counts; // then their logarithms
    std::vector<float> row;
};

} // namespace cascade::attend
