// Cells marked by bytes of 0 and 1, gone through eight at a time.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

namespace cascade::cover {

// Eight bytes at most, zeros behind the last.
inline uint64_t marks_at(const uint8_t * marks, int64_t first, int64_t size) {
    uint64_t word = 0;
    if (first < size) {
        std::memcpy(&word, marks + first, static_cast<size_t>(std::min<int64_t>(sizeof(word), size - first)));
    }
    return word;
}

// Calls `use` with each cell below `size` that is marked in `in` and not in `out`, which has `out_size` marks.
template <typename Use>
void for_each_marked(const uint8_t * in, int64_t size, const uint8_t * out, int64_t out_size, const Use & use) {
    for (int64_t first = 0; first < size; first += static_cast<int64_t>(sizeof(uint64_t))) {
        for (uint64_t word = marks_at(in, first, size) & ~marks_at(out, first, out_size); word != 0; word &= word - 1) {
            use(first + (std::countr_zero(word) / 8));
        }
    }
}

inline int64_t count_marked(const uint8_t * in, int64_t size, const uint8_t * out, int64_t out_size) {
    int64_t count = 0;
    for (int64_t first = 0; first < size; first += static_cast<int64_t>(sizeof(uint64_t))) {
        count += std::popcount(marks_at(in, first, size) & ~marks_at(out, first, out_size));
    }
    return count;
}

} // namespace cascade::cover
