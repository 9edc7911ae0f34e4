// Usage: write_page ANALYSIS.json PAGE.html
#include "report/analysis_page.h"

#include <cstdio>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>

int main(int argc, char ** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: write_page ANALYSIS.json PAGE.html\n");
        return 2;
    }
    try {
        std::ifstream analysis(argv[1]);
        std::ofstream page(argv[2], std::ios::binary);
        page << cascade::report::analysis_page(nlohmann::json::parse(analysis));
        return page.flush() ? 0 : 1;
    } catch (const std::exception & error) {
        std::fprintf(stderr, "write_page: %s\n", error.what());
        return 1;
    }
}
