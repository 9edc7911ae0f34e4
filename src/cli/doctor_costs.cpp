// cascade doctor: what attention costs on this machine, as the plugin measured it.
#include "cli/doctor.h"
#include "plan/costs.h"
#include "plan/plan.h"

#include <fmt/format.h>

namespace cascade::cli {

namespace {

constexpr int64_t longest_context = 131072;
constexpr int64_t batch = 512;

nlohmann::json detail_of(const CostTable & costs) {
    return { { "queries", CostTable::queries }, { "tokens", CostTable::tokens },
             { "engine", costs[Way::engine] },  { "fast", costs[Way::fast] },
             { "joint", costs[Way::joint] },    { "times_measured", costs.times_measured } };
}

std::string from(int64_t tokens) { return tokens == 0 ? "nowhere" : fmt::format("from {} tokens on", tokens); }

std::string finding_of(const CostTable & costs) {
    const auto pays = [&](int64_t queries) {
        return from(costs.covers_pay_from(usual_opening(Mode::near, queries), queries, longest_context));
    };
    return fmt::format(
        "one query on 4096 tokens: engine {:.0f} us, our kernels {:.0f}, on a cover {:.0f}; covers pay {} "
        "in generating, {} in reading a prompt",
        1e6 * costs[Way::engine][0][1], 1e6 * costs[Way::fast][0][1], 1e6 * costs[Way::joint][0][1], pays(1),
        pays(batch));
}

} // namespace

Checks check_costs(const Settings & settings) {
    const std::string file = costs_file(settings.costs);
    const auto tables = costs_in_text(read_costs_file(file), measured_machine());
    Checks checks;
    if (!tables || tables->empty()) {
        checks.push_back({ "costs",
                           Health::ok,
                           "not measured yet: the plugin does it when a context of near or balanced first grows long",
                           "",
                           {} });
        return checks;
    }
    for (const auto & [shape, costs] : *tables) {
        checks.push_back({ "costs", Health::ok, shape + ": " + finding_of(costs), "", detail_of(costs) });
    }
    return checks;
}

} // namespace cascade::cli
