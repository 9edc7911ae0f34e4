// joint: both papers together. Past tokens are opened where a compressed copy of their key says that some query gives
// them a share, as many as the budget allows or, with a gate, all that reach epsilon; a cover speaks for those that
// stay closed. The prototype of this method is what the project began with; docs/method.md has the mathematics.
#include "attend/compressed_keys.h"
#include "attend/speakers.h"

#include <algorithm>

namespace cascade {

namespace {

constexpr int64_t rest_block = 32;

attend::Groups groups_of_rest(const Block & block, Rest rest) {
    switch (rest) {
    case Rest::cover:
        return attend::clusters_of(*block.cover);
    case Rest::blocks:
        return attend::blocks_of(block.past, rest_block);
    case Rest::groups:
        return attend::random_groups(block.past, block.cover->size(), block.seed);
    case Rest::mean:
        return attend::blocks_of(block.past, block.past);
    default:
        return {};
    }
}

void open_by_gate(std::span<const float> shares, double epsilon, Selection & selection) {
    for (size_t token = 0; token < shares.size(); token++) {
        if (shares[token] >= static_cast<float>(epsilon)) {
            selection.opened.push_back(static_cast<int32_t>(token));
        }
    }
}

} // namespace

Selection select_joint(const Block & block, const MethodOptions & options, Team & team) {
    Selection selection;
    if (block.past == 0) {
        return selection;
    }
    const attend::Compression compression = { options.bits, options.coordinates };
    const std::vector<float> rough = attend::compressed_keys(block.key, block.past, block.key_size, compression);
    const std::vector<float> shares = past_shares(block, rough.data(), {}, options.rank, team);
    const attend::Groups groups = groups_of_rest(block, options.rest);
    if (options.epsilon >= 0.0) {
        open_by_gate(shares, options.epsilon, selection);
    } else {
        attend::open_in_order(attend::by_falling(shares), groups, tokens_in_budget(block, options.budget), selection);
    }
    if (options.rest != Rest::drop) {
        attend::add_speakers(block, groups, selection);
    }
    selection.index_bits = compression.bits_for_key(block.key_size);
    return selection;
}

} // namespace cascade
