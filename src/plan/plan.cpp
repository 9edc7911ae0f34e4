#include "plan/plan.h"

#include "attend/joint/joint_attention.h"

namespace cascade {

namespace {

constexpr int64_t tiny_context = 256;    // tokens up to which there is nothing to win
constexpr int64_t fewest_covered = 1024; // tokens below which hardly anything is covered
constexpr double advantage = 0.95;       // a way must cost so much less than the one before it, or nothing changes
constexpr double first_index = 1.25;     // a cover must save something to pay for indexing what is there already

// Why the engine's own op is left in place without a look at costs; empty: it isn't.
std::string reason_to_leave(const Attention & attention, const Circumstances & circumstances) {
    if (circumstances.epsilon == 0.0F) {
        return "epsilon 0";
    }
    if (!circumstances.cached) {
        return "no cache";
    }
    if (circumstances.sliding) {
        return "sliding window";
    }
    if (attention.tokens <= tiny_context) {
        return "short context";
    }
    const char * objection = attend::JointAttention::objection(attention);
    return objection != nullptr ? objection : "";
}

Way cheapest(const CostTable & costs, const Attention & a, const Circumstances & circumstances, double opened) {
    const auto cost = [&](Way way) {
        const double usual = way == circumstances.before ? advantage : 1.0;
        return way == Way::joint
                   ? costs.seconds_on_cover(opened, a.queries, a.tokens) * (circumstances.indexed ? usual : first_index)
                   : costs.seconds(way, a.queries, a.tokens) * usual;
    };
    const Way best = cost(Way::fast) < cost(Way::engine) ? Way::fast : Way::engine;
    return a.tokens >= fewest_covered && cost(Way::joint) < cost(best) ? Way::joint : best;
}

Decision plan_long_context(const Settings & settings, const Attention & attention,
                           const Circumstances & circumstances) {
    if (std::string reason = reason_to_leave(attention, circumstances); !reason.empty()) {
        return { Way::engine, std::move(reason) };
    }
    Way way = attention.tokens >= fewest_covered ? Way::joint : Way::engine;
    if (const auto forced = settings.attention_way()) {
        way = *forced == Way::joint ? way : *forced;
    } else if (circumstances.costs != nullptr) {
        const double opened =
            circumstances.opened >= 0.0 ? circumstances.opened : usual_opening(settings.mode, attention.queries);
        way = cheapest(*circumstances.costs, attention, circumstances, opened);
    }
    const bool covered = attention.tokens >= fewest_covered;
    return { way, way != Way::engine ? "" : (covered ? "the engine's own is faster" : "short context") };
}

} // namespace

// As measured with SmolLM2 on text: many queries want to see more than one does.
double usual_opening(Mode mode, int64_t queries) {
    constexpr int64_t few = 16;
    if (mode == Mode::balanced) {
        return queries <= few ? 0.01 : 0.06;
    }
    return queries <= few ? 0.05 : 0.3;
}

bool has_choice(const Settings & settings, const Attention & attention, const Circumstances & circumstances) {
    return settings.approximates() && !settings.attention_way() && reason_to_leave(attention, circumstances).empty();
}

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
        return plan_long_context(settings, attention, circumstances);
    default:
        return { Way::engine, "mode " + std::string(mode_name(settings.mode)) };
    }
}

} // namespace cascade
