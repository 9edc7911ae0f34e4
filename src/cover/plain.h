// Covers as one would write them on a blackboard: token by token, one thread, no blocks, no instruction sets. The
// oracle of the fast ones, which must agree with it to the bit.
#pragma once

#include "cascade/cover.h"

namespace cascade::plain {

// The similarity of any two tokens.
class Gram {
  public:
    Gram(const TokenRows & rows, Sign sign);
    float operator()(int64_t a, int64_t b) const { return entries[static_cast<size_t>((a * count) + b)]; }
    int64_t tokens() const { return count; }

  private:
    int64_t count;
    std::vector<float> entries;
};

// `threshold` is CoverOptions::threshold().
Cover threshold_cover(const Gram & gram, float threshold);
Cover leader_cover(const Gram & gram, float threshold);
Inherited inherit_cover(const Gram & gram, const Cover & below, InheritForm form, float threshold);
Cover assign(const Gram & gram, std::span<const int32_t> representatives, Reach reach);

} // namespace cascade::plain
