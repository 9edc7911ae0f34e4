// SnapKV (Li et al., "LLM Knows What You are Looking for Before Generation"), after H2O (Zhang et al., "Heavy-Hitter
// Oracle"): what the last queries before the block looked at is what the block will look at. Ours asks anew for every
// block, and for all query heads of a KV head together.
#include "attend/method.h"

#include <algorithm>

namespace cascade {

namespace {

constexpr int64_t neighbours = 7; // SnapKV's pooling: whoever stands beside a token that counts, counts as much

std::vector<float> pooled(const std::vector<float> & scores) {
    const auto n = static_cast<int64_t>(scores.size());
    std::vector<float> result(scores.size());
    for (int64_t token = 0; token < n; token++) {
        const auto begin = scores.begin() + std::max<int64_t>(0, token - (neighbours / 2));
        const auto end = scores.begin() + std::min<int64_t>(n, token + (neighbours / 2) + 1);
        result[static_cast<size_t>(token)] = *std::max_element(begin, end);
    }
    return result;
}

} // namespace

Selection select_snapkv(const Block & block, const MethodOptions & options, Team & team) {
    const int64_t asked = std::min(options.sample, block.earlier_queries);
    if (block.past <= 0 || asked <= 0) {
        return select_streaming(block, options, team); // nobody came before
    }
    // The earlier queries as a block with nothing recent: shares of the past alone, all of which they see
    Block earlier = block;
    earlier.query = block.earlier_query;
    earlier.queries = block.earlier_queries;
    earlier.tokens = block.past;
    std::vector<int64_t> rows;
    rows.reserve(static_cast<size_t>(block.group * asked));
    for (int64_t head = 0; head < block.group; head++) {
        for (int64_t query = block.earlier_queries - asked; query < block.earlier_queries; query++) {
            rows.push_back((head * block.earlier_queries) + query);
        }
    }
    Selection selection;
    const std::vector<float> shares = past_shares(earlier, block.key, rows, Rank::sum, team);
    selection.opened = best_tokens(pooled(shares), tokens_in_budget(block, options.budget));
    selection.index_bits = 16.0 * static_cast<double>(block.key_size);
    return selection;
}

} // namespace cascade
