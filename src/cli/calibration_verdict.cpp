#include "cli/calibration_verdict.h"

#include "backend/gate_bounds.h"

#include "cli/calibrate_run.h"

#include "ggml-cpp.h"
#include "gguf.h"

#include <algorithm>
#include <fmt/format.h>

namespace cascade::cli {

namespace {

double weight_bytes(const gguf_context * model, const sidecar::Subspace & subspace) {
    double bytes = 0.0;
    for (const sidecar::Image & image : subspace.images) {
        const int64_t found = gguf_find_tensor(model, image.weight.c_str());
        bytes += found >= 0 ? static_cast<double>(gguf_get_tensor_size(model, found)) : 0.0;
    }
    return bytes;
}

GatedCosts costs_of(const gguf_context * model, const sidecar::Subspace & subspace) {
    GatedCosts costs;
    costs.weights = weight_bytes(model, subspace);
    costs.basis = static_cast<double>(subspace.basis.size);
    for (const sidecar::Image & image : subspace.images) {
        costs.images += static_cast<double>(image.tensor.size);
        costs.rough += static_cast<double>(image.rough.size + image.rest.size);
    }
    return costs;
}

} // namespace

std::string calibration_verdict(const std::string & model, const std::string & sidecar) {
    const sidecar::Opened opened = sidecar::open_subspaces(sidecar);
    const gguf_context_ptr weights(gguf_init_from_file(model.c_str(), { true, nullptr }));
    if (!opened.file || !weights || opened.file->subspaces().empty()) {
        return {};
    }
    size_t paying = 0;
    double most = 0.0;
    for (const sidecar::Subspace & subspace : opened.file->subspaces()) {
        const GatedShares shares = backend::held_out_shares(subspace.figures, static_cast<float>(gate));
        paying += gating_pays(costs_of(weights.get(), subspace), shares) ? 1 : 0;
        most = std::max(most, shares.passed + shares.rough);
    }
    const size_t all = opened.file->subspaces().size();
    return paying > 0
               ? fmt::format("{} of {} inputs pay: GGML_CASCADE=gated takes those, the engine computes the others",
                             paying, all)
               : fmt::format("no input of {} pays: at most {:.1f} % of tokens pass the gate, and GGML_CASCADE=gated "
                             "leaves the linear layers to the engine",
                             all, 100.0 * most);
}

} // namespace cascade::cli
