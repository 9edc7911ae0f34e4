// Subspaces from a sidecar, found again in the graphs of its model: which inputs of linear maps have one, and whether
// going through it pays.
#pragma once

#include "attend/kernels/buffer.h"
#include "backend/subspace_counts.h"
#include "cascade/settings.h"
#include "graph/gated_input.h"
#include "graph/shadow.h"
#include "plan/linear_plan.h"
#include "sidecar/subspaces.h"

#include <memory>
#include <string>
#include <vector>

namespace cascade::backend {

// All gated inputs of one graph.
class GatedInputs {
  public:
    struct Wanted {
        std::string kind;
        graph::GatedMaps maps;
        GatedCosts costs;
    };

    // May throw std::bad_alloc.
    GatedInputs(const ggml_cgraph & original, std::vector<Wanted> inputs);

    std::vector<graph::Substitution> substitutions();

    // After a computation: adds what happened in it, and makes ready for the next.
    void finish(SubspaceTotals & totals);

  private:
    std::vector<Wanted> wanted;
    attend::Buffer scratch; // shared by all
    std::vector<std::unique_ptr<graph::GatedInput>> inputs;
    std::vector<graph::GatedInput::Counts> latest; // by input
};

class LayerSubspaces {
  public:
    // Reads the sidecar in mode gated; says once why it can't be used.
    explicit LayerSubspaces(const Settings & settings) noexcept;

    // nullptr: nothing in this graph goes through a subspace.
    std::unique_ptr<GatedInputs> of(const ggml_cgraph & original, const graph::ModelGraph & model);

    SubspaceTotals & counts() { return totals; }
    const SubspaceTotals & counts() const { return totals; }

  private:
    bool knows(const graph::Layer & layer) const;
    bool pays(const GatedInputs::Wanted & input, const sidecar::Subspace & subspace) const;

    const Settings & settings;
    std::shared_ptr<const sidecar::SubspaceFile> file;
    SubspaceTotals totals;
};

} // namespace cascade::backend
