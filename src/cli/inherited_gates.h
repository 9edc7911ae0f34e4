// Gates and covers joined: would a token that a representative speaks for pass its gate where the representative does?
#pragma once

#include "subspace/products.h"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace cascade::cli {

class InheritedGates {
  public:
    // Inputs of some tokens, and ||r|| / ||x|| of each. Covers are the leaders at the first paper's tau.
    void add(const subspace::MatrixView & rows, std::span<const float> outside, Team & team);

    // Of tokens, those that have a representative other than themselves.
    double spoken_for() const;
    // Of those, the ones whose gate decides as their representative's; not a number where there is none.
    double agreeing(double bound) const;

  private:
    int64_t tokens = 0;
    std::vector<std::pair<float, float>> pairs; // a token's own, its representative's
};

} // namespace cascade::cli
