// Keys and values of any columns of one KV head as floats, laid out for many query rows: tokens of the cache, or rows
// of the caller's own. Keys stand in the kernel's panels, values in rows padded to row_padding.
#pragma once

#include "attend/kernels/buffer.h"
#include "attend/kernels/kernel.h"

#include <vector>

namespace cascade::attend {

class Columns {
  public:
    enum class Biases : bool { none, all };

    // Room for `columns` columns, which are to be filled. May throw std::bad_alloc.
    void reset(int64_t columns, int64_t key_size, int64_t value_size, Biases biases = Biases::none);

    // Writes the columns at, at + 1, … Threads may write different columns at the same time, each with its own scratch.
    void fill(int64_t at, const Attention & a, int64_t kv_head, int64_t stream, const TokenList & tokens,
              Buffer & scratch);

    // The same with rows that the caller has; no mask hides them.
    void fill(int64_t at, const float * keys, const float * values, int64_t columns);

    // Added to the logits of the columns at, at + 1, … (0 where it isn't called); needs Biases::all.
    void set_biases(int64_t at, const float * biases, int64_t columns);

    // What a thread's scratch will need, so that it is there beforehand.
    static int64_t scratch_floats(const Attention & a);

    int64_t count() const { return columns_count; }
    const Kernel & ops() const { return *kernel_in_use; }
    const float * panel(int64_t p) const { return keys_memory.get() + (p * ops().columns * key_size); }
    const float * value(int64_t column) const { return values_memory.get() + (column * value_width); }
    int64_t width() const { return value_width; }

    // The token number of each column, -1 for the caller's own; a range where they follow each other.
    TokenList tokens(int64_t first, int64_t n) const;

    // Biases of a tile, nullptr where there are none to add. Columns beyond the last are hidden by theirs.
    const float * biases(int64_t first) const;

  private:
    void fill_keys(int64_t at, const float * rows, int64_t columns);

    const Kernel * kernel_in_use = nullptr;
    int64_t columns_count = 0;
    int64_t key_size = 0;
    int64_t value_size = 0;
    int64_t value_width = 0;
    bool biased = false;
    Buffer keys_memory;
    Buffer values_memory;
    Buffer biases_memory;
    std::vector<int32_t> numbers;
};

// Rows of the given tokens as floats, `step` apart; cheap for runs of tokens also where values are transposed.
void read_rows(const Kernel & ops, const Rows & rows, int64_t head, int64_t stream, const TokenList & tokens,
               int64_t size, float * out, int64_t step);

} // namespace cascade::attend
