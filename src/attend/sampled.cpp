// Blocks by a few sampled queries, after MInference (Jiang et al., "Accelerating Pre-filling for Long-Context LLMs via
// Dynamic Sparse Attention") and XAttention (Xu et al., "Block Sparse Attention with Antidiagonal Scoring"): a sample
// of the attention itself says which blocks of the past count. Ours spreads the sample evenly over the queries, where
// the papers take the last ones or the antidiagonals, and chooses once for the whole block of queries.
#include "attend/method.h"

#include <algorithm>

namespace cascade {

namespace {

// The middles of `count` equal parts of the block, for every head.
std::vector<int64_t> spread_rows(const Block & block, int64_t count) {
    std::vector<int64_t> rows;
    rows.reserve(static_cast<size_t>(block.group * count));
    for (int64_t head = 0; head < block.group; head++) {
        for (int64_t part = 0; part < count; part++) {
            rows.push_back((head * block.queries) + (((2 * part) + 1) * block.queries / (2 * count)));
        }
    }
    return rows;
}

} // namespace

Selection select_sampled(const Block & block, const MethodOptions & options, Team & team) {
    Selection selection;
    if (block.past <= 0) {
        return selection;
    }
    const int64_t size = std::max<int64_t>(1, options.block);
    const std::vector<int64_t> rows = spread_rows(block, std::clamp<int64_t>(options.sample, 1, block.queries));
    const std::vector<float> shares = past_shares(block, block.key, rows, options.rank, team);
    std::vector<float> scores(static_cast<size_t>((block.past + size - 1) / size));
    for (size_t i = 0; i < scores.size(); i++) {
        const int64_t begin = static_cast<int64_t>(i) * size;
        double score = 0.0;
        for (int64_t token = begin; token < std::min(begin + size, block.past); token++) {
            const double share = shares[static_cast<size_t>(token)];
            score = options.rank == Rank::sum ? score + share : std::max(score, share);
        }
        scores[i] = static_cast<float>(score);
    }
    selection.opened = best_blocks(scores, block.past, size, tokens_in_budget(block, options.budget));
    selection.index_bits = 16.0 * static_cast<double>(block.key_size);
    return selection;
}

} // namespace cascade
