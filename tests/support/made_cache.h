// A cache of keys and values in any format, written cell by cell as an engine does; tokens come in kinds, so that
// covers find something to do.
#pragma once

#include "attend/kernels/kernel.h"
#include "cover/index/cells.h"
#include "support/cases.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace cascade::test {

using Random = std::mt19937;

constexpr float hidden = -std::numeric_limits<float>::infinity();

inline int64_t between(Random & random, int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
}

inline bool coin(Random & random, double share) { return std::bernoulli_distribution(share)(random); }

template <class T>
T one_of(Random & random, std::initializer_list<T> choices) {
    return choices.begin()[between(random, 0, static_cast<int64_t>(choices.size()) - 1)];
}

template <Format format>
void from_stored(const void * stored, float * values, int64_t n) {
    attend::plain_kernel.to_float(format, stored, n, values);
}

inline void from_byte(const void * stored, float * values, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        values[i] = static_cast<float>(static_cast<const int8_t *>(stored)[i]) / 32.0F;
    }
}

// Toward zero: no test asks for more.
inline uint16_t to_half(float value) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    const auto sign = static_cast<uint16_t>((bits >> 16U) & 0x8000U);
    const auto exponent = static_cast<int>((bits >> 23U) & 255U) - 112;
    if (exponent <= 0) {
        return sign;
    }
    const bool is_nan = exponent == 143 && (bits & 0x7FFFFFU) != 0;
    const uint32_t magnitude = exponent >= 31 ? 0x7C00U + (is_nan ? 1U : 0U)
                                              : (static_cast<uint32_t>(exponent) << 10U) | ((bits >> 13U) & 1023U);
    return static_cast<uint16_t>(sign | magnitude);
}

class Stored {
  public:
    Stored() = default;
    Stored(Format stored_format, int64_t values) : format(stored_format), bytes(static_cast<size_t>(values) * size()) {}

    size_t size() const { return format == Format::other ? 1 : attend::format_bytes(format); }
    char * data() { return bytes.data(); }

    void set(int64_t i, float value) {
        uint32_t bits = 0;
        std::memcpy(&bits, &value, sizeof(bits));
        const auto brain = static_cast<uint16_t>(bits >> 16U);
        const uint16_t half = to_half(value);
        const auto byte = static_cast<int8_t>(std::isfinite(value) ? std::clamp(value * 32.0F, -127.0F, 127.0F) : 0.0F);
        const void * values[] = { &byte, &value, &half, &brain };
        std::memcpy(bytes.data() + (static_cast<size_t>(i) * size()), values[static_cast<size_t>(format)], size());
    }

    // Packed rows, head after head, stream after stream.
    Rows rows(int64_t values, int64_t count, int64_t heads) const {
        Rows r;
        r.base = bytes.data();
        r.row_stride = static_cast<size_t>(values) * size();
        r.head_stride = static_cast<size_t>(count) * r.row_stride;
        r.stream_stride = static_cast<size_t>(heads) * r.head_stride;
        r.format = format;
        const ToFloat readers[] = { from_byte, from_stored<Format::f32>, from_stored<Format::f16>,
                                    from_stored<Format::bf16> };
        r.to_float = readers[static_cast<size_t>(format)];
        return r;
    }

  private:
    Format format = Format::f32;
    std::vector<char> bytes;
};

struct CacheShape {
    int64_t streams = 1, cells = 1, kv_heads = 1, key_size = 8, value_size = 8;
    Format format = Format::f32;
    bool heads_inside = true; // heads of a cell side by side, as in the engine's cache
};

class MadeCache {
  public:
    MadeCache(const CacheShape & of_shape, Random & random)
        : s(of_shape), keys(s.format, s.streams * s.cells * s.kv_heads * s.key_size),
          values(s.format, s.streams * s.cells * s.kv_heads * s.value_size), mean(row(s.key_size, random, 1.0F)) {
        for (int kind = 0; kind < kinds; kind++) {
            key_kinds.push_back(row(s.key_size, random, 0.8F));
            value_kinds.push_back(row(s.value_size, random, 1.0F));
        }
    }

    // A new token of any kind into a cell.
    void write(int64_t stream, int64_t cell, Random & random) {
        const auto kind = static_cast<size_t>(between(random, 0, kinds - 1));
        std::normal_distribution<float> normal;
        const float spread = coin(random, 0.1) ? 1.5F : 0.4F;
        for (int64_t head = 0; head < s.kv_heads; head++) {
            for (int64_t i = 0; i < s.key_size; i++) {
                const auto at = static_cast<size_t>((head * s.key_size) + i);
                keys.set(offset(stream, cell, head, s.key_size) + i,
                         mean[at] + key_kinds[kind][at] + (spread * normal(random)));
            }
            for (int64_t i = 0; i < s.value_size; i++) {
                const auto at = static_cast<size_t>((head * s.value_size) + i);
                values.set(offset(stream, cell, head, s.value_size) + i,
                           value_kinds[kind][at] + (spread * normal(random)));
            }
        }
    }

    // One of its values becomes one that isn't finite; `other` has no such.
    void spoil(int64_t stream, int64_t cell, Random & random) {
        const int64_t head = between(random, 0, s.kv_heads - 1);
        const float bad = one_of(random, { std::numeric_limits<float>::quiet_NaN(), -hidden, hidden });
        if (coin(random, 0.5)) {
            keys.set(offset(stream, cell, head, s.key_size) + between(random, 0, s.key_size - 1), bad);
        } else {
            values.set(offset(stream, cell, head, s.value_size) + between(random, 0, s.value_size - 1), bad);
        }
    }

    Rows key_rows() const { return cache_rows(keys, s.key_size); }
    Rows value_rows() const { return cache_rows(values, s.value_size); }
    const CacheShape & shape() const { return s; }

    cover::Cells cells(int64_t stream) const {
        cover::Cells of;
        of.key = key_rows();
        of.value = value_rows();
        of.stream = stream;
        of.kv_heads = s.kv_heads;
        of.key_size = s.key_size;
        of.value_size = s.value_size;
        return of;
    }

  private:
    static constexpr int kinds = 7;

    std::vector<float> row(int64_t size, Random & random, float scale) const {
        std::normal_distribution<float> normal(0.0F, scale);
        std::vector<float> made(static_cast<size_t>(s.kv_heads * size));
        std::generate(made.begin(), made.end(), [&] { return normal(random); });
        return made;
    }

    int64_t offset(int64_t stream, int64_t cell, int64_t head, int64_t size) const {
        const int64_t in_stream = s.heads_inside ? (cell * s.kv_heads) + head : (head * s.cells) + cell;
        return ((stream * s.cells * s.kv_heads) + in_stream) * size;
    }

    Rows cache_rows(const Stored & stored, int64_t size) const {
        Rows rows = stored.rows(size, s.cells, s.kv_heads);
        if (s.heads_inside) {
            rows.head_stride = rows.row_stride;
            rows.row_stride *= static_cast<size_t>(s.kv_heads);
        }
        return rows;
    }

    CacheShape s;
    Stored keys;
    Stored values;
    std::vector<float> mean;
    std::vector<std::vector<float>> key_kinds;
    std::vector<std::vector<float>> value_kinds;
};

} // namespace cascade::test
