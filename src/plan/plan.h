// What runs where: for each attention of a graph, whether we compute it, and why not where we don't.
#pragma once

#include "cascade/attention.h"
#include "cascade/settings.h"
#include "plan/costs.h"

#include <string>

namespace cascade {

struct Decision {
    Way way = Way::engine;
    std::string why; // left: the reason, for the statistics
};

struct Circumstances {
    bool cached = false;               // keys and values stand in a cache
    bool sliding = false;              // of which the layer sees a window only
    float epsilon = 0.0F;              // of the gate, in modes that approximate
    const CostTable * costs = nullptr; // of this attention on this machine, where they are known
    Way before = Way::engine;          // what was decided for the layer and as many queries the last time
    double opened = -1.0;              // share of the covered tokens, as seen there the last time; below 0: not yet
    bool indexed = false;              // the layer was computed on a cover before
};

// Whether the costs of an attention are worth knowing: there is a choice.
bool has_choice(const Settings & settings, const Attention & attention, const Circumstances & circumstances);

// The share of the covered tokens that is opened, as far as one knows before having seen any.
double usual_opening(Mode mode, int64_t queries);

Decision plan_attention(const Settings & settings, const Attention & attention, const Circumstances & circumstances);

} // namespace cascade
