// Whether a sidecar was made for the model whose graph this is, layer by layer.
#pragma once

#include "graph/model_graph.h"
#include "sidecar/sidecar.h"

#include <string>

namespace cascade::backend {

// Why a layer isn't one that the sidecar knows, in words for a person; empty: it is.
std::string stranger_to(const sidecar::Sidecar & sidecar, const graph::Layer & layer);

} // namespace cascade::backend
