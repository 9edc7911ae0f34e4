// An analysis as scripts read it, and as an interrupted one is kept.
#pragma once

#include "analysis/figures.h"

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

namespace cascade::report {

struct AnalysisInfo {
    std::string model; // file name
    std::string architecture;
    std::string text; // file name
    std::string version;
    std::string date;
    std::string isa;
    std::string sign;
    int layers = 0;
    int64_t windows = 0; // wanted, of all lengths
    bool complete = true;
};

// Everything over all windows: results[], layer_similarity[], sample, timing.
nlohmann::json analysis_json(const AnalysisInfo & info, std::span<const analysis::Window> windows);

// One window, as it was.
nlohmann::json window_json(const analysis::Window & window);
analysis::Window window_from(const nlohmann::json & json); // throws nlohmann::json::exception, std::runtime_error

} // namespace cascade::report
