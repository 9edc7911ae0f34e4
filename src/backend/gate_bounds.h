// What an epsilon means for an input of linear maps whose sidecar is known.
#pragma once

#include "plan/linear_plan.h"
#include "sidecar/subspaces.h"
#include "subspace/gate.h"

#include <algorithm>

namespace cascade::backend {

// epsilon bounds the error by estimate: of the input or, with a gain, of the output. What a rough copy leaves of a
// residual is its own error.
inline subspace::GateBounds gate_bounds(const sidecar::SubspaceFigures & figures, float epsilon) {
    const float skip = epsilon / figures.gain;
    return { skip, figures.has_rough() ? skip / figures.rough_error : 0.0F };
}

inline GatedShares held_out_shares(const sidecar::SubspaceFigures & figures, float epsilon) {
    const subspace::GateBounds bounds = gate_bounds(figures, epsilon);
    GatedShares shares;
    shares.passed = held_out_within(figures, static_cast<double>(bounds.skip));
    if (figures.has_rough()) {
        shares.rough = std::max(0.0, held_out_within(figures, static_cast<double>(bounds.rough)) - shares.passed);
    }
    return shares;
}

} // namespace cascade::backend
