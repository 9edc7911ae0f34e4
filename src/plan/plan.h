// What runs where: for each attention of a graph, whether we compute it, and why not where we don't.
#pragma once

#include "cascade/attention.h"
#include "cascade/settings.h"

#include <string>

namespace cascade {

struct Decision {
    bool take = false;
    std::string why; // left: the reason, for the statistics
};

Decision plan_attention(const Settings & settings, const Attention & attention);

} // namespace cascade
