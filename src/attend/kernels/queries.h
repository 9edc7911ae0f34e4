// The query rows that read one KV head: all heads of its group for a run of queries, as floats with the scale folded
// in. Row r is head r % group of query r / group.
#pragma once

#include "attend/kernels/buffer.h"
#include "attend/kernels/kernel.h"

#include <vector>

namespace cascade::attend {

enum class QueryLayout : uint8_t {
    packs, // for attend_columns
    rows,  // for attend_tokens: rows of step() floats, padded with zeros
};

class QueryRows {
  public:
    // Reads the queries first_query, …, first_query + queries - 1. Allocates only for more rows than ever before, and
    // may throw std::bad_alloc then. The attention must outlive it.
    void fill(const Attention & attention, int64_t kv_head, int64_t stream, int64_t first_query, int64_t queries,
              QueryLayout layout);

    const Attention & attention() const { return *a; }
    const Kernel & ops() const { return *kernel_in_use; }
    int64_t kv_head() const { return kv; }
    int64_t stream() const { return in_stream; }

    int64_t rows() const { return count; }
    int64_t packs() const { return (count + ops().rows - 1) / ops().rows; }
    const float * pack(int64_t p) const { return floats.get() + (p * ops().rows * a->key_size); }
    const float * row(int64_t r) const { return floats.get() + (r * step()); }
    int64_t step() const { return round_up(a->key_size, row_padding); }

    int64_t query(int64_t r) const { return first + (r / group); }
    int64_t head(int64_t r) const { return (kv * group) + (r % group); }
    float slope(int64_t r) const { return slopes[static_cast<size_t>(r % group)]; } // of the mask, in powers of two
    float cap() const { return a->soft_cap * a->post_scale * log2_e; }

    // Rows with the same mask: all heads of a query, or none.
    int64_t rows_of_mask() const { return a->mask_heads > 1 ? 1 : group; }

  private:
    void read(int64_t r, float * out) const;

    const Attention * a = nullptr;
    const Kernel * kernel_in_use = nullptr;
    int64_t kv = 0;
    int64_t in_stream = 0;
    int64_t first = 0;
    int64_t group = 1;
    int64_t count = 0;
    std::vector<float> slopes;
    Buffer floats;
    Buffer one_row;
};

// n values of one row as floats, by vector instructions where the format has them.
void read_row(const Kernel & ops, const Rows & rows, int64_t row, int64_t head, int64_t stream, int64_t n,
              float * values);

} // namespace cascade::attend
