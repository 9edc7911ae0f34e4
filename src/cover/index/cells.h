// One layer's keys and values as a cache holds them, and what a group of queries sees of them.
#pragma once

#include "cascade/attention.h"

#include <cstdint>
#include <span>

namespace cascade::cover {

struct Cells {
    Rows key;   // rows: cells
    Rows value; // rows: cells
    int64_t stream = 0;
    int64_t kv_heads = 0;
    int64_t key_size = 0;
    int64_t value_size = 0;

    int64_t keys_of_cell() const { return kv_heads * key_size; }
    int64_t values_of_cell() const { return kv_heads * value_size; }

    // All heads of a cell, one after the other.
    void read_keys(int64_t cell, float * out) const { read(key, cell, key_size, out); }
    void read_values(int64_t cell, float * out) const { read(value, cell, value_size, out); }

  private:
    void read(const Rows & rows, int64_t cell, int64_t size, float * out) const {
        for (int64_t head = 0; head < kv_heads; head++) {
            rows.read(cell, head, stream, size, out + (head * size));
        }
    }
};

// What some queries see, one byte for each cell.
struct Seen {
    std::span<const uint8_t> by_all;  // all of them see it, with nothing added to its logit
    std::span<const uint8_t> by_some; // at least one sees it
};

} // namespace cascade::cover
