#include "backend/log.h"

#include <array>
#include <atomic>
#include <cstdio>

namespace cascade::backend {

void say_once(Notice notice, std::string_view text) noexcept {
    static std::array<std::atomic<bool>, static_cast<size_t>(Notice::count_)> said = {};
    if (!said[static_cast<size_t>(notice)].exchange(true)) {
        std::fprintf(stderr, "cascade: %.*s\n", static_cast<int>(text.size()), text.data());
    }
}

} // namespace cascade::backend
