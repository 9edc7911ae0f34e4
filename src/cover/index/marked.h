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
    if (first + static_cast<int64_t>(sizeof(word)) <= size) {
        std::memcpy(&word, marks + first, sizeof(word));
    } else if (first < size) {
        std::memcpy(&word, marks + first, static_cast<size_t>(size - first));
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

// The sum of eight bytes that are 0 or small.
inline int64_t sum_of_bytes(uint64_t bytes) {
    constexpr uint64_t every_second = 0x00FF00FF00FF00FFU;
    const uint64_t pairs = (bytes & every_second) + ((bytes >> 8U) & every_second);
    return static_cast<int64_t>((pairs * 0x0001000100010001U) >> 48U);
}

struct Differences {
    int64_t only_in_first = 0;
    int64_t only_in_second = 0;
};

// Cells that are marked in one of two and not in the other.
inline Differences compare_marks(const uint8_t * first, int64_t first_size, const uint8_t * second,
                                 int64_t second_size) {
    constexpr int64_t step = sizeof(uint64_t);
    constexpr int64_t most_steps = 255; // that a byte counts
    const int64_t size = std::max(first_size, second_size);
    Differences found;
    for (int64_t from = 0; from < size; from += step * most_steps) {
        const int64_t end = std::min(size, from + (step * most_steps));
        uint64_t left = 0;
        uint64_t right = 0;
        for (int64_t at = from; at < end; at += step) {
            const uint64_t a = marks_at(first, at, first_size);
            const uint64_t b = marks_at(second, at, second_size);
            left += a & ~b;
            right += b & ~a;
        }
        found.only_in_first += sum_of_bytes(left);
        found.only_in_second += sum_of_bytes(right);
    }
    return found;
}

} // namespace cascade::cover
