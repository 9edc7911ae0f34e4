// Numbers from a seed, the same on every machine: the distributions of <random> differ from library to library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace cascade::evaluate {

class Random {
  public:
    explicit Random(uint64_t seed) : state(seed) {}

    // splitmix64
    uint64_t next() {
        uint64_t z = (state += 0x9e3779b97f4a7c15U);
        z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
        return z ^ (z >> 31U);
    }

    // 0 to count - 1; the bias of the remainder is below 2^-50 for the lists that we draw from.
    size_t below(size_t count) { return static_cast<size_t>(next() % count); }

    double unit() { return static_cast<double>(next() >> 11U) * 0x1p-53; }

    template <typename T>
    const T & pick(const std::vector<T> & from) {
        return from[below(from.size())];
    }

    template <typename T>
    void shuffle(std::vector<T> & items) {
        for (size_t i = items.size(); i > 1; --i) {
            std::swap(items[i - 1], items[below(i)]);
        }
    }

  private:
    uint64_t state;
};

} // namespace cascade::evaluate
