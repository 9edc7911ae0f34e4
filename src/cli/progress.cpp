#include "cli/progress.h"

#include <cstdio>
#include <fmt/format.h>
#include <unistd.h>

namespace cascade::cli {

Progress::Progress() : terminal(isatty(STDERR_FILENO) != 0) {}

void Progress::show(const std::string & text) {
    if (terminal) {
        const auto seconds =
            std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start).count();
        fmt::print(stderr, "\r\033[K{}, {} s", text, seconds);
        std::fflush(stderr);
        shown = true;
    }
}

void Progress::clear() {
    if (shown) {
        fmt::print(stderr, "\r\033[K");
        std::fflush(stderr);
        shown = false;
    }
}

} // namespace cascade::cli
