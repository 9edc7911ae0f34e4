#include "plan/plan.h"

namespace cascade {

Decision plan_attention(const Settings & settings, const Attention & attention) {
    if (settings.mode != Mode::reference) {
        return { false, "mode " + std::string(mode_name(settings.mode)) };
    }
    if (attention.queries == 0 || attention.tokens == 0) {
        return { false, "nothing to attend" };
    }
    return { true, {} };
}

} // namespace cascade
