// Results as one HTML file that stands alone: plots, tables and text, without any request to a network.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace cascade::report {

// `frame` is the template, a file of report/page. Strings in the data are not trusted. Throws std::runtime_error where
// the program was built without the plot library.
std::string html_page(std::string_view frame, const nlohmann::json & data);

// The same complaint, before the work that a page is to show.
void check_page();

} // namespace cascade::report
