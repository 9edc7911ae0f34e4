#include "backend/layer_subspaces.h"

#include "backend/gate_bounds.h"
#include "backend/known_layer.h"
#include "backend/log.h"

#include <algorithm>

namespace cascade::backend {

namespace {

graph::Matrix matrix_of(const sidecar::TensorView & view) { return { view.type, view.columns, view.rows, view.data }; }

// Of one computation, or of all.
template <typename Counts>
GatedShares shares_of(const Counts & counts) {
    const auto tokens = static_cast<double>(counts.tokens);
    return { static_cast<double>(counts.passed) / tokens, static_cast<double>(counts.rough) / tokens };
}

// The maps of a layer that a subspace has images for, with what they read.
GatedInputs::Wanted maps_of(const sidecar::Subspace & subspace, const graph::Layer & layer, float epsilon) {
    GatedInputs::Wanted wanted;
    wanted.maps.basis = matrix_of(subspace.basis);
    wanted.maps.bounds = gate_bounds(subspace.figures, epsilon);
    wanted.costs.basis = static_cast<double>(subspace.basis.size);
    for (const sidecar::Image & image : subspace.images) {
        for (const graph::LinearSite & site : layer.linear) {
            if (image.weight == site.weight->name && !site.routed) {
                wanted.kind = wanted.maps.maps.empty() ? site.name : wanted.kind;
                wanted.maps.maps.push_back(
                    { site.node, matrix_of(image.tensor), matrix_of(image.rough), matrix_of(image.rest) });
                wanted.costs.weights += static_cast<double>(ggml_nbytes(site.weight));
                wanted.costs.images += static_cast<double>(image.tensor.size);
                wanted.costs.rough += static_cast<double>(image.rough.size + image.rest.size);
            }
        }
    }
    std::sort(wanted.maps.maps.begin(), wanted.maps.maps.end(),
              [](const graph::GatedMap & one, const graph::GatedMap & other) { return one.node < other.node; });
    return wanted;
}

// Inputs share memory for gathered rows: only those can be taken whose maps don't stand among another's.
void leave_out_entangled(std::vector<GatedInputs::Wanted> & inputs) {
    std::sort(inputs.begin(), inputs.end(), [](const auto & one, const auto & other) {
        return one.maps.maps.front().node < other.maps.maps.front().node;
    });
    int last = -1;
    std::erase_if(inputs, [&](const GatedInputs::Wanted & input) {
        const bool entangled = input.maps.maps.front().node <= last;
        last = entangled ? last : input.maps.maps.back().node;
        return entangled;
    });
}

} // namespace

GatedInputs::GatedInputs(const ggml_cgraph & original, std::vector<Wanted> to_gate) : wanted(std::move(to_gate)) {
    for (const Wanted & input : wanted) {
        scratch.need(graph::scratch_floats(original, input.maps));
    }
    latest.resize(wanted.size());
    inputs.reserve(wanted.size());
    for (const Wanted & input : wanted) {
        inputs.push_back(std::make_unique<graph::GatedInput>(original, input.maps, scratch.get()));
    }
}

std::vector<graph::Substitution> GatedInputs::substitutions() {
    std::vector<graph::Substitution> all;
    for (const auto & input : inputs) {
        for (size_t map = 0; map < input->gated().maps.size(); map++) {
            all.push_back({ input->gated().maps[map].node, input->nodes_instead(map) });
        }
    }
    return all;
}

void GatedInputs::finish(SubspaceTotals & totals) {
    // all of them first: counting may run out of memory
    std::transform(inputs.begin(), inputs.end(), latest.begin(), [](const auto & input) { return input->finish(); });
    for (size_t i = 0; i < inputs.size(); i++) {
        const graph::GatedInput::Counts counts = latest[i];
        if (counts.tokens == 0) { // the graph wasn't computed
            continue;
        }
        const auto tokens = static_cast<double>(counts.tokens);
        SubspaceCounts & total = totals[wanted[i].kind];
        total.tokens += counts.tokens;
        total.passed += counts.passed;
        total.rough += counts.rough;
        total.weight_bytes += tokens * wanted[i].costs.weights;
        total.bytes += tokens * bytes_read(wanted[i].costs, shares_of(counts));
    }
}

LayerSubspaces::LayerSubspaces(const Settings & used) noexcept : settings(used) {
    if (settings.mode != Mode::gated) {
        return;
    }
    try {
        if (settings.sidecar.empty()) {
            say_once(Notice::sidecar, "GGML_CASCADE=gated needs GGML_CASCADE_SIDECAR=file, made by cascade calibrate");
            return;
        }
        sidecar::Opened opened = sidecar::open_subspaces(settings.sidecar);
        file = std::move(opened.file);
        if (!file || file->subspaces().empty()) {
            say_once(Notice::sidecar,
                     "GGML_CASCADE_SIDECAR=" + settings.sidecar + " " +
                         (file ? "has no subspaces: make some with cascade calibrate" : opened.complaint) +
                         "; the engine computes everything");
        }
    } catch (...) {
        file.reset();
        say_once(Notice::sidecar, "the sidecar can't be used: out of memory");
    }
}

bool LayerSubspaces::knows(const graph::Layer & layer) const {
    const std::string why = stranger_to(file->sidecar(), layer);
    if (!why.empty()) {
        say_once(Notice::sidecar, why + "; such layers are left to the engine");
    }
    return why.empty();
}

bool LayerSubspaces::pays(const GatedInputs::Wanted & input, const sidecar::Subspace & subspace) const {
    if (settings.way) {
        return settings.way == Way::gated;
    }
    const auto seen = totals.find(input.kind);
    const bool known = seen != totals.end() && seen->second.tokens > 0;
    return gating_pays(input.costs,
                       known ? shares_of(seen->second) : held_out_shares(subspace.figures, settings.gate()));
}

std::unique_ptr<GatedInputs> LayerSubspaces::of(const ggml_cgraph & original, const graph::ModelGraph & model) {
    if (!file) {
        return nullptr;
    }
    std::vector<GatedInputs::Wanted> inputs;
    for (const graph::Layer & layer : model.layers) {
        const bool known = knows(layer);
        for (const sidecar::Subspace & subspace : file->subspaces()) {
            if (!known || subspace.layer != layer.index) {
                continue;
            }
            GatedInputs::Wanted input = maps_of(subspace, layer, settings.gate());
            if (graph::gating_objection(original, input.maps) == nullptr && pays(input, subspace)) {
                inputs.push_back(std::move(input));
            }
        }
    }
    leave_out_entangled(inputs);
    return inputs.empty() ? nullptr : std::make_unique<GatedInputs>(original, std::move(inputs));
}

} // namespace cascade::backend
