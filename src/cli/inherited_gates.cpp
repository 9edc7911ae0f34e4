#include "cli/inherited_gates.h"

#include "cascade/cover.h"

#include <algorithm>
#include <limits>

namespace cascade::cli {

void InheritedGates::add(const subspace::MatrixView & rows, std::span<const float> outside, Team & team) {
    const Cover cover = leader_cover({ rows.data, rows.rows, rows.columns, rows.stride }, {}, team);
    for (int64_t token = 0; token < rows.rows; token++) {
        const int32_t speaker = cover.assigned[static_cast<size_t>(token)];
        if (speaker != token) {
            pairs.emplace_back(outside[static_cast<size_t>(token)], outside[static_cast<size_t>(speaker)]);
        }
    }
    tokens += rows.rows;
}

double InheritedGates::spoken_for() const {
    return tokens > 0 ? static_cast<double>(pairs.size()) / static_cast<double>(tokens) : 0.0;
}

double InheritedGates::agreeing(double bound) const {
    const auto passes = [&](float residual) { return static_cast<double>(residual) <= bound; };
    const auto agree = std::count_if(pairs.begin(), pairs.end(),
                                     [&](const auto & pair) { return passes(pair.first) == passes(pair.second); });
    return pairs.empty() ? std::numeric_limits<double>::quiet_NaN()
                         : static_cast<double>(agree) / static_cast<double>(pairs.size());
}

} // namespace cascade::cli
