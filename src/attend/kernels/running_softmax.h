// A softmax that is still growing, for each of some query rows: the largest logit, the sum of the weights below it and
// the weighted sum of the values. Columns are folded in by attend_columns and attend_tokens, in any number of calls.
#pragma once

#include "attend/kernels/queries.h"

#include <vector>

namespace cascade::attend {

// 2^(logit - largest); 0 for a logit of minus infinity, whatever the largest is.
float weight_below(float logit, float largest);

class RunningSoftmax {
  public:
    // Nothing seen yet. Allocates only for more than ever before; may throw std::bad_alloc.
    void start(int64_t rows, int64_t value_size);

    // Folds in what another one saw for the same rows.
    void merge(const RunningSoftmax & other);

    // Divides and writes the rows to the attention's output, its sinks taken along. Rows that saw nothing are zeros.
    void finish(const QueryRows & queries) const;

    int64_t rows() const { return static_cast<int64_t>(softmax.size()); }
    int64_t width() const { return value_width; }
    RowSoftmax & row(int64_t r) { return softmax[static_cast<size_t>(r)]; }
    const RowSoftmax & row(int64_t r) const { return softmax[static_cast<size_t>(r)]; }
    float * out(int64_t r) const { return sums.get() + (r * value_width); }

  private:
    int64_t value_width = 0;
    std::vector<RowSoftmax> softmax;
    Buffer sums; // up to a whole number of packs
};

} // namespace cascade::attend
