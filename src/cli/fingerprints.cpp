#include "cli/fingerprints.h"

#include "cli/probe.h"
#include "graph/model_graph.h"
#include "graph/weight_identity.h"
#include "sidecar/sidecar.h"

#include <stdexcept>

namespace cascade::cli {

std::vector<uint64_t> fingerprints_of(const std::string & model) {
    ProbeOptions options;
    options.model = model;
    const auto probe = probe_model(options);
    std::vector<uint64_t> fingerprints(static_cast<size_t>(llama_model_n_layer(probe->model.get())),
                                       sidecar::no_fingerprint);
    bool any = false;
    for (const graph::Layer & layer : graph::read_graph(probe->nodes).layers) {
        const auto identity = graph::identity_of(layer.norm_weight);
        if (identity && layer.index >= 0 && static_cast<size_t>(layer.index) < fingerprints.size()) {
            fingerprints[static_cast<size_t>(layer.index)] = *identity;
            any = true;
        }
    }
    if (!any) {
        throw std::runtime_error("this model's layers have no normalisation weights to be known by: no sidecar can be "
                                 "made for it");
    }
    return fingerprints;
}

} // namespace cascade::cli
