// SHA-256 of a file (FIPS 180-4), as sha256sum prints it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace cascade::cli {

class Sha256 {
  public:
    void add(std::span<const unsigned char> bytes);
    std::string hex(); // of all that was added; nothing may be added afterwards

  private:
    void add_block(const unsigned char * block);

    std::array<uint32_t, 8> state = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };
    std::array<unsigned char, 64> rest = {}; // of a block that isn't full yet
    uint64_t size = 0;
};

// Throws std::runtime_error with a message for a person.
std::string sha256_of_file(const std::string & path);

} // namespace cascade::cli
