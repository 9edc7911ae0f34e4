// What the mask says about a tile: columns on one side, the rows of a query block on the other.
#pragma once

#include "attend/kernels/buffer.h"
#include "attend/kernels/queries.h"

#include <vector>

namespace cascade::attend {

class MaskTile {
  public:
    // Allocates only for more than ever before; may throw std::bad_alloc.
    void need(const Attention & a, int64_t rows, int64_t columns);

    // Token numbers below 0 are visible to all. Without a mask everything is.
    void read(const QueryRows & queries, const TokenList & tokens);

    // Columns that any row sees stand in [from, to).
    int64_t from() const { return first; }
    int64_t to() const { return last; }

    // A row's mask values, column 0 first, up to a multiple of two row_paddings and zeros behind the last; nullptr
    // where all are zero.
    const float * row(int64_t r) const {
        const auto mask = static_cast<size_t>(r / rows_together);
        return values[mask] != Visibility::clear ? floats.get() + (static_cast<int64_t>(mask) * step) : nullptr;
    }

  private:
    Visibility read_one(const QueryRows & queries, int64_t r, const TokenList & tokens, float * out);
    void widen(const float * mask, int64_t columns);

    int64_t step = 0;
    int64_t rows_together = 1;
    int64_t first = 0;
    int64_t last = 0;
    std::vector<Visibility> values; // `hidden` rows have all their values written too
    Buffer floats;
    Buffer gathered;
    Buffer whole; // a row of a format that only converts from its beginning
};

} // namespace cascade::attend
