// Whether linear maps that share an input are worth taking through its subspace.
#pragma once

#include <cstdint>

namespace cascade {

struct GatedCosts {
    double weights = 0.0; // bytes of the maps
    double basis = 0.0;   // of the input's basis
    double images = 0.0;  // of the maps' images
};

// What is read, a token at a time: the basis always, then the images or the maps themselves.
inline double bytes_read(const GatedCosts & costs, double tokens, double passed) {
    return (tokens * costs.basis) + (passed * costs.images) + ((tokens - passed) * costs.weights);
}

// `passing`: the share of tokens that the gate lets pass. Generating text is bound by the bytes that are read. Barriers
// and a gate's own work want some reserve.
inline bool gating_pays(const GatedCosts & costs, double passing) {
    constexpr double reserve = 0.95;
    return bytes_read(costs, 1.0, passing) < reserve * costs.weights;
}

} // namespace cascade
