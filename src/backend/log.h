// One line on stderr, once: the only way the plugin speaks unasked.
#pragma once

#include <string_view>

namespace cascade::backend {

enum class Notice {
    engine,   // another engine than the one we were built for
    no_cpu,   // the engine has no CPU device
    settings, // a variable that can't be understood
    fallback, // something of ours failed; the engine's own op ran
    stats,    // the statistics can't be written
    costs,    // measured costs can't be kept
    sidecar,  // it can't be used, or is for another model
    count_,
};

// Prints "cascade: <text>" the first time it is called for this kind of notice. Never throws.
void say_once(Notice notice, std::string_view text) noexcept;

} // namespace cascade::backend
