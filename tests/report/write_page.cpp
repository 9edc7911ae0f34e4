// Usage: write_page RESULTS.json PAGE.html
#include "report/analysis_page.h"
#include "report/eval_page.h"

#include <cstdio>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>

int main(int argc, char ** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: write_page RESULTS.json PAGE.html\n");
        return 2;
    }
    try {
        std::ifstream file(argv[1]);
        const nlohmann::json results = nlohmann::json::parse(file);
        std::ofstream page(argv[2], std::ios::binary);
        page << (results.value("kind", "") == "evaluation" ? cascade::report::eval_page(results)
                                                           : cascade::report::analysis_page(results));
        return page.flush() ? 0 : 1;
    } catch (const std::exception & error) {
        std::fprintf(stderr, "write_page: %s\n", error.what());
        return 1;
    }
}
