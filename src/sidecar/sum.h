// Sums that tell a damaged file from a whole one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace cascade::sidecar {

class Sum { // FNV-1a, for a few values
  public:
    void add(const void * data, size_t size) {
        for (size_t i = 0; i < size; i++) {
            value = (value ^ static_cast<const unsigned char *>(data)[i]) * prime;
        }
    }
    void add(uint64_t number) { add(&number, sizeof(number)); }
    void add(const std::string & text) {
        add(text.size());
        add(text.data(), text.size());
    }
    template <typename Number>
    void add(const std::vector<Number> & numbers) {
        add(numbers.size());
        add(numbers.data(), numbers.size() * sizeof(Number));
    }
    uint64_t get() const { return value; }

    static constexpr uint64_t prime = 1099511628211U;
    static constexpr uint64_t start = 14695981039346656037U;

  private:
    uint64_t value = start;
};

// Of tensors, at the speed of memory: four chains of words. Each step can be undone, so no change of a single word goes
// unseen.
class DataSum {
  public:
    static constexpr size_t step = 32; // bytes: the alignment of GGUF, of which data is a multiple

    void add(std::span<const std::byte> data) {
        for (size_t at = 0; at + step <= data.size(); at += step) {
            std::array<uint64_t, 4> words = {};
            std::memcpy(words.data(), data.data() + at, step);
            for (size_t i = 0; i < words.size(); i++) {
                lanes[i] = (lanes[i] ^ words[i]) * Sum::prime;
                lanes[i] ^= lanes[i] >> 29U;
            }
        }
    }
    uint64_t get() const {
        Sum sum;
        for (const uint64_t lane : lanes) {
            sum.add(lane);
        }
        return sum.get();
    }

  private:
    std::array<uint64_t, 4> lanes = { Sum::start, Sum::start + 2, Sum::start + 4, Sum::start + 6 };
};

} // namespace cascade::sidecar
