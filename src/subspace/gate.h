// The gate of Gated Subspace Inference: which tokens of an input lie so near to its subspace that the rest is skipped.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cascade::subspace {

// Tokens of a batch, split by the gate; both lists grow.
struct GatedTokens {
    std::vector<int32_t> passed;
    std::vector<int32_t> refused;

    void reserve(int64_t tokens) {
        passed.reserve(static_cast<size_t>(tokens));
        refused.reserve(static_cast<size_t>(tokens));
    }
};

// Rows of floats, `step` apart.
struct FloatRows {
    const float * values = nullptr;
    int64_t size = 0;
    int64_t step = 0;

    std::span<const float> row(int64_t i) const { return { values + (i * step), static_cast<size_t>(size) }; }
};

double squared_length(std::span<const float> values);

// A token passes where ||r|| <= epsilon ||x||. The residual r = x - V g is never formed: with orthonormal directions
// ||r||^2 = ||x||^2 - ||g||^2. Nothing passes at epsilon 0, nor what isn't finite, nor
// where ||g|| is longer than x: then the directions aren't orthonormal. Allocates nothing where `gated` has
// room.
void split_tokens(const FloatRows & inputs, const FloatRows & coordinates, int64_t tokens, float epsilon,
                  GatedTokens & gated);

} // namespace cascade::subspace
