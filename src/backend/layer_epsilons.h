// The gate's epsilon, layer by layer: what GGML_CASCADE_EPS says; else the sidecar's, for layers that it knows; else
// the mode's default.
#pragma once

#include "cascade/settings.h"
#include "graph/model_graph.h"
#include "sidecar/sidecar.h"

#include <cstdint>
#include <optional>
#include <string>

namespace cascade::backend {

class LayerEpsilons {
  public:
    // Reads the sidecar, where one is named and will be asked; says once why it can't be used.
    explicit LayerEpsilons(const Settings & settings) noexcept;

    float of(const graph::Layer & layer);

    // For the statistics.
    const std::string & refused() const { return why_not; } // empty: the file was read, or none is named
    int64_t matched() const { return layers_matched; }      // layers of the graphs read
    int64_t unmatched() const { return layers_unmatched; }

  private:
    const Settings & settings;
    std::optional<sidecar::Sidecar> file;
    std::string why_not;
    int64_t layers_matched = 0;
    int64_t layers_unmatched = 0;
};

} // namespace cascade::backend
