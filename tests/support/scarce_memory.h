// Memory that runs out when a test wants it to: the allocations of the whole program go through here.
#pragma once

#include <cstdint>

namespace cascade::test {

// After so many allocations there are none, until it ends.
class ScarceMemory {
  public:
    explicit ScarceMemory(int64_t allocations);
    ~ScarceMemory();
    ScarceMemory(const ScarceMemory &) = delete;
    ScarceMemory & operator=(const ScarceMemory &) = delete;

    static bool ran_out(); // since the last one began
};

// Bytes that were asked for and not given back.
int64_t bytes_in_use();

} // namespace cascade::test
