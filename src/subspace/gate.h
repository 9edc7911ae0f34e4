// The gate of Gated Subspace Inference: which tokens of an input lie so near to its subspace that the rest is skipped.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cascade::subspace {

// Tokens of a batch, split by the gate; the lists grow.
struct GatedTokens {
    std::vector<int32_t> passed;
    std::vector<int32_t> rough; // their residual is small enough for a rough copy of the maps
    std::vector<int32_t> refused;

    void reserve(int64_t tokens) {
        for (std::vector<int32_t> * list : { &passed, &rough, &refused }) {
            list->reserve(static_cast<size_t>(tokens));
        }
    }
    void clear() {
        for (std::vector<int32_t> * list : { &passed, &rough, &refused }) {
            list->clear();
        }
    }
};

// Of ||r|| / ||x||. A token passes up to `skip`; above it, it goes by the rough copy up to `rough`.
struct GateBounds {
    float skip = 0.0F;
    float rough = 0.0F; // 0: there is no rough copy
};

// Rows of floats, `step` apart.
struct FloatRows {
    const float * values = nullptr;
    int64_t size = 0;
    int64_t step = 0;

    std::span<const float> row(int64_t i) const { return { values + (i * step), static_cast<size_t>(size) }; }
};

double squared_length(std::span<const float> values);

// A token passes where ||r|| <= skip ||x||. The residual r = x - V g is never formed: with orthonormal directions
// ||r||^2 = ||x||^2 - ||g||^2. Nothing passes a bound of 0, nor what isn't finite, nor
// where ||g|| is longer than x: then the directions aren't orthonormal. Allocates nothing where `gated` has
// room.
void split_tokens(const FloatRows & inputs, const FloatRows & coordinates, int64_t tokens, const GateBounds & bounds,
                  GatedTokens & gated);

} // namespace cascade::subspace
