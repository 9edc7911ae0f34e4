// The first paper's own figures (tau = 0.30, T = 512), to stand beside ours where the model is one of its three.
#pragma once

#include "analysis/figures.h"

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace cascade::report {

struct PaperSetting {
    std::string architecture;
    int64_t layers = 0;
    int64_t tokens = 0;
    std::string source;
    double tau = 0.0;
    std::string sign;
    analysis::Method method = analysis::Method::threshold;
};

// In the shape of a result of ours: "model", summary figures and "layers"; null for any other model or setting.
nlohmann::json paper_figures(const PaperSetting & setting);

} // namespace cascade::report
