#include "plan/plan.h"

#include "attend/joint/joint_attention.h"

namespace cascade {

namespace {

constexpr int64_t fewest_tokens = 1024; // that a cover pays for

Decision plan_joint(const Settings & settings, const Attention & attention, const Circumstances & circumstances) {
    if (settings.gate() == 0.0F) {
        return { Way::engine, "epsilon 0" };
    }
    if (!circumstances.cached) {
        return { Way::engine, "no cache" };
    }
    if (circumstances.sliding) {
        return { Way::engine, "sliding window" };
    }
    if (attention.tokens < fewest_tokens) {
        return { Way::engine, "short context" };
    }
    if (const char * objection = attend::JointAttention::objection(attention)) {
        return { Way::engine, objection };
    }
    return { Way::joint, {} };
}

} // namespace

Decision plan_attention(const Settings & settings, const Attention & attention, const Circumstances & circumstances) {
    if (attention.queries == 0 || attention.tokens == 0) {
        return { Way::engine, "nothing to attend" };
    }
    switch (settings.mode) {
    case Mode::reference:
        return { Way::reference, {} };
    case Mode::fast:
        return { Way::fast, {} };
    case Mode::near:
    case Mode::balanced:
        return plan_joint(settings, attention, circumstances);
    default:
        return { Way::engine, "mode " + std::string(mode_name(settings.mode)) };
    }
}

} // namespace cascade
