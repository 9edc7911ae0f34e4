#include "cli/sha256.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <vector>

namespace cascade::cli {

namespace {

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr std::array<uint32_t, 64> constants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

std::array<uint32_t, 64> schedule_of(const unsigned char * block) {
    std::array<uint32_t, 64> words = {};
    for (size_t i = 0; i < 16; i++) {
        for (size_t byte = 0; byte < 4; byte++) {
            words[i] = (words[i] << 8U) | block[(4 * i) + byte];
        }
    }
    for (size_t i = 16; i < words.size(); i++) {
        const uint32_t a = words[i - 15];
        const uint32_t b = words[i - 2];
        words[i] = words[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3U)) + words[i - 7] +
                   (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10U));
    }
    return words;
}

} // namespace

void Sha256::add_block(const unsigned char * block) {
    const std::array<uint32_t, 64> words = schedule_of(block);
    auto [a, b, c, d, e, f, g, h] = state;
    for (size_t i = 0; i < words.size(); i++) {
        const uint32_t first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) +
                               constants[i] + words[i];
        const uint32_t second = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g;
        g = f;
        f = e;
        e = d + first;
        d = c;
        c = b;
        b = a;
        a = first + second;
    }
    const std::array<uint32_t, 8> added = { a, b, c, d, e, f, g, h };
    for (size_t i = 0; i < state.size(); i++) {
        state[i] += added[i];
    }
}

void Sha256::add(std::span<const unsigned char> bytes) {
    while (!bytes.empty()) {
        const size_t used = size % rest.size();
        const size_t taken = std::min(rest.size() - used, bytes.size());
        std::copy_n(bytes.begin(), taken, rest.begin() + static_cast<ptrdiff_t>(used));
        size += taken;
        bytes = bytes.subspan(taken);
        if (size % rest.size() == 0) {
            add_block(rest.data());
        }
    }
}

std::string Sha256::hex() {
    constexpr size_t length_at = 56;
    const uint64_t bits = size * 8;
    constexpr unsigned char one = 0x80;
    constexpr unsigned char zero = 0;
    add({ &one, 1 });
    while (size % rest.size() != length_at) {
        add({ &zero, 1 });
    }
    for (int shift = 56; shift >= 0; shift -= 8) {
        const auto byte = static_cast<unsigned char>(bits >> static_cast<unsigned>(shift));
        add({ &byte, 1 });
    }
    std::string text;
    for (const uint32_t word : state) {
        char digits[9] = {};
        std::snprintf(digits, sizeof(digits), "%08x", word);
        text += digits;
    }
    return text;
}

std::string sha256_of_file(const std::string & path) {
    std::ifstream file(path, std::ios::binary);
    std::vector<char> part(size_t{ 1 } << 20U);
    Sha256 sum;
    while (file.read(part.data(), static_cast<std::streamsize>(part.size())) || file.gcount() > 0) {
        sum.add({ reinterpret_cast<const unsigned char *>(part.data()), static_cast<size_t>(file.gcount()) });
    }
    if (!file.eof()) {
        throw std::runtime_error("can't read '" + path + "'");
    }
    return sum.hex();
}

} // namespace cascade::cli
