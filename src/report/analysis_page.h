// The page of `cascade analyze`.
#pragma once

#include "report/html_page.h"

namespace cascade::report {

// analysis is of kind "cascade-analysis"; fields that were not measured may be null or missing.
inline std::string analysis_page(const nlohmann::json & analysis) { return html_page("analysis.html", analysis); }

} // namespace cascade::report
