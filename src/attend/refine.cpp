// refine: a smaller cover, and the clusters that some query gives the largest share (or all queries together the
// largest sum) opened and read exactly, as many as the budget allows; the last one only in part, its earliest tokens.
#include "attend/speakers.h"

#include <algorithm>

namespace cascade {

Selection select_refine(const Block & block, const MethodOptions & options, Team & team) {
    Selection selection;
    if (block.past == 0) {
        return selection;
    }
    const attend::Groups clusters = attend::clusters_of(*block.cover);
    Selection speaking; // all clusters closed
    attend::add_speakers(block, clusters, speaking);
    const std::vector<float> shares =
        speaker_shares(block, speaking.keys.data(), speaking.log_counts, options.rank, team);
    std::vector<std::vector<int32_t>> members(static_cast<size_t>(clusters.count));
    for (size_t token = 0; token < clusters.of.size(); token++) {
        members[static_cast<size_t>(clusters.of[token])].push_back(static_cast<int32_t>(token));
    }
    std::vector<int32_t> order;
    order.reserve(clusters.of.size());
    for (const int32_t cluster : attend::by_falling(shares)) {
        const auto & tokens = members[static_cast<size_t>(cluster)];
        order.insert(order.end(), tokens.begin(), tokens.end());
    }
    attend::open_in_order(order, clusters, tokens_in_budget(block, options.budget), selection);
    attend::add_speakers(block, clusters, selection);
    return selection;
}

} // namespace cascade
