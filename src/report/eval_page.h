// The page of `cascade eval`.
#pragma once

#include "report/html_page.h"

namespace cascade::report {

// evaluation is of kind "evaluation" (eval_json.h); fields that were not measured may be null or missing. Where its
// field `leaderboard` is true, the plot of all methods comes first and is largest.
inline std::string eval_page(const nlohmann::json & evaluation) { return html_page("evaluation.html", evaluation); }

} // namespace cascade::report
