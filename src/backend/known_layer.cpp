#include "backend/known_layer.h"

#include "graph/weight_identity.h"

namespace cascade::backend {

std::string stranger_to(const sidecar::Sidecar & sidecar, const graph::Layer & layer) {
    const auto index = static_cast<size_t>(layer.index);
    const auto identity = graph::identity_of(layer.norm_weight);
    if (layer.index >= 0 && index < sidecar.fingerprints.size() && identity &&
        sidecar.fingerprints[index] == *identity) {
        return {};
    }
    return "the sidecar is for another model: layer " + std::to_string(layer.index) +
           (identity ? " has other normalisation weights" : " has no normalisation weights to be known by");
}

} // namespace cascade::backend
