// A template names its parts in comments: the data, or a file. They are replaced in a single pass, so that a part which
// holds such a comment itself stays as it is.
#include "report/html_page.h"

#include "report/page/assets.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

namespace cascade::report {
namespace {

// JSON that is safe inside a script element: there, "<" could end the element or start a comment. All other than ASCII
// is escaped too, and what is not UTF-8 (a token may be half a character) is replaced.
std::string data_block(const nlohmann::json & data) {
    const std::string json = data.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
    std::string safe;
    safe.reserve(json.size());
    for (const char c : json) {
        switch (c) {
        case '<':
            safe += "\\u003c";
            break;
        case '>':
            safe += "\\u003e";
            break;
        case '&':
            safe += "\\u0026";
            break;
        default:
            safe += c;
        }
    }
    return safe;
}

std::string_view file_part(std::string_view name) {
    const std::string_view file = embedded(name);
    if (file.empty() && name == "echarts.min.js") {
        throw std::runtime_error("this program was built without Apache ECharts, which draws the page's plots: "
                                 "run scripts/get-echarts and build again");
    }
    if (file.empty()) {
        throw std::logic_error("the page's template names a file that was not embedded: " + std::string(name));
    }
    return file;
}

} // namespace

void check_page() { file_part("echarts.min.js"); }

std::string html_page(std::string_view frame, const nlohmann::json & data) {
    constexpr std::string_view open = "<!--part ";
    constexpr std::string_view close = "-->";
    std::string page;
    std::string_view rest = file_part(frame);
    for (size_t at = rest.find(open); at != std::string_view::npos; at = rest.find(open)) {
        page += rest.substr(0, at);
        rest.remove_prefix(at + open.size());
        const size_t end = rest.find(close);
        const std::string_view name = rest.substr(0, end);
        if (name == "data") {
            page += data_block(data);
        } else {
            page += file_part(name);
        }
        rest.remove_prefix(end + close.size());
    }
    page += rest;
    return page;
}

} // namespace cascade::report
