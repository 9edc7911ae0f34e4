// Usage: write_page RESULTS.json PAGE.html
#include "report/analysis_page.h"
#include "report/calibration_report.h"
#include "report/eval_page.h"

#include <cstdio>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>

namespace {

std::string page_of(const nlohmann::json & results) {
    const std::string kind = results.value("kind", "");
    if (kind == "frontier") {
        return cascade::report::html_page("frontier.html", results);
    }
    if (kind == "calibration") {
        return cascade::report::calibration_page(results);
    }
    return kind == "evaluation" ? cascade::report::eval_page(results) : cascade::report::analysis_page(results);
}

} // namespace

int main(int argc, char ** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: write_page RESULTS.json PAGE.html\n");
        return 2;
    }
    try {
        std::ifstream file(argv[1]);
        const nlohmann::json results = nlohmann::json::parse(file);
        std::ofstream page(argv[2], std::ios::binary);
        page << page_of(results);
        return page.flush() ? 0 : 1;
    } catch (const std::exception & error) {
        std::fprintf(stderr, "write_page: %s\n", error.what());
        return 1;
    }
}
