// Whether linear maps that share an input are worth taking through its subspace.
#pragma once

#include <cstdint>

namespace cascade {

struct GatedCosts {
    double weights = 0.0; // bytes of the maps
    double basis = 0.0;   // of the input's basis
    double images = 0.0;  // of the maps' images
    double passing = 0.0; // share of tokens that the gate lets pass
};

// What is read for a token on average: the basis always, then the images or the maps themselves.
inline double bytes_gated(const GatedCosts & costs) {
    return costs.basis + (costs.passing * costs.images) + ((1.0 - costs.passing) * costs.weights);
}

// Generating text is bound by the bytes that are read. Barriers and a gate's own work want some reserve.
inline bool gating_pays(const GatedCosts & costs) {
    constexpr double reserve = 0.95;
    return bytes_gated(costs) < reserve * costs.weights;
}

} // namespace cascade
