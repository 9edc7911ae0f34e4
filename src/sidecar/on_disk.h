// A file that claims to be a sidecar, opened for reading.
#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <vector>

namespace cascade::sidecar {

class OnDisk {
  public:
    explicit OnDisk(const std::string & path);

    const std::string & complaint() const { return why_not; } // empty: it can be read
    uint64_t size() const { return bytes; }

    // As much of its beginning as describes the rest, or of no use as it is.
    std::vector<std::byte> head();
    bool read(std::span<std::byte> to); // from its beginning

  private:
    std::ifstream file;
    uint64_t bytes = 0;
    std::string why_not;
};

} // namespace cascade::sidecar
