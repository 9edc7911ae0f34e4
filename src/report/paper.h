// The first paper's own figures (tau = 0.30, T = 512), to stand beside ours where the model is one of its three.
#pragma once

#include "analysis/figures.h"

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace cascade::report {

// In the shape of a result of ours: "model", summary figures and "layers"; null for any other model or method.
nlohmann::json paper_figures(const std::string & architecture, analysis::Method method);

} // namespace cascade::report
