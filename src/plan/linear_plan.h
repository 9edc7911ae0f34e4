// Whether linear maps that share an input are worth taking through its subspace.
#pragma once

#include <cstdint>

namespace cascade {

struct GatedCosts {
    double weights = 0.0; // bytes of the maps
    double basis = 0.0;   // of the input's basis
    double images = 0.0;  // of the maps' images
    double rough = 0.0;   // of the maps' rough copies, with the images of what they lack
};

// Of tokens: those that the gate lets pass, those for which the rough copies will do.
struct GatedShares {
    double passed = 0.0;
    double rough = 0.0;
};

// What is read for a token in the mean: the basis always, then the images, the rough copies or the maps themselves.
inline double bytes_read(const GatedCosts & costs, const GatedShares & tokens) {
    return costs.basis + (tokens.passed * costs.images) + (tokens.rough * costs.rough) +
           ((1.0 - tokens.passed - tokens.rough) * costs.weights);
}

// Generating text is bound by the bytes that are read. Barriers
// and a gate's own work want some reserve.
inline bool gating_pays(const GatedCosts & costs, const GatedShares & tokens) {
    constexpr double reserve = 0.95;
    return bytes_read(costs, tokens) < reserve * costs.weights;
}

} // namespace cascade
