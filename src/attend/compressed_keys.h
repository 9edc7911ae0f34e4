// What a compressed copy of keys remembers, unpacked again: low-bit values around the keys' mean, of all coordinates or
// of the leading ones in the keys' own basis.
#pragma once

#include <cstdint>
#include <vector>

namespace cascade::attend {

struct Compression {
    int bits = 4;            // of a value; 16: as it is
    int64_t coordinates = 0; // leading ones of the basis; 0: all, in the basis they come in

    // Stored for each key of `size` values: one scale of 16 bits where values are rounded.
    double bits_for_key(int64_t size) const;
};

std::vector<float> compressed_keys(const float * keys, int64_t count, int64_t size, const Compression & compression);

} // namespace cascade::attend
