// The true shares of all past tokens, and the tokens with the largest: what a perfect estimate would open. No saving,
// since it reads every key to know; a bound for the rules that open tokens and drop the rest.
#include "attend/method.h"

namespace cascade {

Selection select_oracle(const Block & block, const MethodOptions & options, Team & team) {
    Selection selection;
    if (block.past <= 0) {
        return selection;
    }
    const std::vector<float> shares = past_shares(block, block.key, {}, options.rank, team);
    selection.opened = best_tokens(shares, tokens_in_budget(block, options.budget));
    selection.index_bits = 16.0 * static_cast<double>(block.key_size);
    return selection;
}

} // namespace cascade
