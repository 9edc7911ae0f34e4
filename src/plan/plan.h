// What runs where: for each attention of a graph, whether we compute it, and why not where we don't.
#pragma once

#include "cascade/attention.h"
#include "cascade/settings.h"

#include <string>

namespace cascade {

enum class Way {
    engine,    // the engine's own op
    reference, // plainly
    fast,      // exactly, by our kernels
    joint,     // on a cover
};

struct Decision {
    Way way = Way::engine;
    std::string why; // left: the reason, for the statistics
};

struct Circumstances {
    bool cached = false;  // keys and values stand in a cache
    bool sliding = false; // of which the layer sees a window only
};

Decision plan_attention(const Settings & settings, const Attention & attention, const Circumstances & circumstances);

} // namespace cascade
