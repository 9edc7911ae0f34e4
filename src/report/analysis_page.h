// The analysis as one HTML file that stands alone: plots, tables and the text, without any request to a network.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace cascade::report {

// analysis is of kind "cascade-analysis"; fields that were not measured may be null or missing. Strings in it are not
// trusted. Throws std::runtime_error where the program was built without the plot library.
std::string analysis_page(const nlohmann::json & analysis);

// The same complaint, before the work that a page is to show.
void check_page();

} // namespace cascade::report
