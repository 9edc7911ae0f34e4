// Bytes of a fuzzer's input, one decision at a time. What lies beyond their end is made up, always the same for the
// same first byte: a few bytes are enough for a whole problem.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace cascade::fuzz {

class ByteReader {
  public:
    explicit ByteReader(std::span<const uint8_t> input) : bytes(input), state(input.empty() ? 0 : input.front()) {}

    uint8_t byte() { return at < bytes.size() ? bytes[at++] : static_cast<uint8_t>(made_up() >> 32U); }

    // 0 … count - 1.
    int64_t below(int64_t count) {
        const auto wide = static_cast<int64_t>(byte());
        return count <= 256 ? wide % count : ((wide << 8U) | byte()) % count;
    }

    int64_t between(int64_t least, int64_t most) { return least + below(most - least + 1); }

    float any_float() {
        const uint8_t raw[4] = { byte(), byte(), byte(), byte() };
        float value = 0.0F;
        std::memcpy(&value, raw, sizeof value);
        return value;
    }

    // A few exact sixteenths around zero, so that equal and opposite values are common.
    float small_float() { return static_cast<float>(static_cast<int8_t>(byte())) / 16.0F; }

    // In [-1, 1), made up from here on: for noise, which is not worth the input's bytes.
    float noise() { return (static_cast<float>(made_up() >> 40U) / 8388608.0F) - 1.0F; }

    void reseed(uint64_t seed) { state = seed; }

  private:
    uint64_t made_up() { // splitmix64
        uint64_t z = (state += 0x9e3779b97f4a7c15U);
        z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
        return z ^ (z >> 31U);
    }

    std::span<const uint8_t> bytes;
    size_t at = 0;
    uint64_t state;
};

} // namespace cascade::fuzz
