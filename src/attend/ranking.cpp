// What every rule ends with: how many past tokens a budget allows, and which tokens those are once they, or whole
// blocks of them, have a score.
#include "attend/method.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>

namespace cascade {

namespace {

// Indices by falling score, of equal ones the earliest first; only the first `count` are in order, and no others are
// returned. A score that is no number comes last: it would otherwise have no place in any order.
std::vector<int32_t> ranked(std::span<const float> given, int64_t count) {
    std::vector<float> scores(given.begin(), given.end());
    for (float & score : scores) {
        score = std::isnan(score) ? -std::numeric_limits<float>::infinity() : score;
    }
    std::vector<int32_t> order(scores.size());
    std::iota(order.begin(), order.end(), 0);
    const auto better = [&](int32_t a, int32_t b) {
        const float score_a = scores[static_cast<size_t>(a)];
        const float score_b = scores[static_cast<size_t>(b)];
        return score_a != score_b ? score_a > score_b : a < b;
    };
    const auto end = order.begin() + std::clamp<int64_t>(count, 0, static_cast<int64_t>(order.size()));
    std::partial_sort(order.begin(), end, order.end(), better);
    order.erase(end, order.end());
    return order;
}

} // namespace

int64_t tokens_in_budget(const Block & block, double budget) {
    if (block.past <= 0) {
        return 0;
    }
    const double wanted = std::round(budget * static_cast<double>(block.past));
    if (!(wanted > 1.0)) {
        return 1;
    }
    return wanted < static_cast<double>(block.past) ? static_cast<int64_t>(wanted) : block.past;
}

std::vector<int32_t> best_tokens(std::span<const float> scores, int64_t count) {
    std::vector<int32_t> tokens = ranked(scores, count);
    std::sort(tokens.begin(), tokens.end());
    return tokens;
}

std::vector<int32_t> best_blocks(std::span<const float> block_scores, int64_t past, int64_t block_size, int64_t count) {
    assert(block_size > 0 && static_cast<int64_t>(block_scores.size()) == (past + block_size - 1) / block_size);
    const int64_t wanted = std::clamp<int64_t>(count, 0, past);
    // One more than fill the budget: the past's last block may be short
    const int64_t blocks = ((wanted + block_size - 1) / block_size) + 1;
    std::vector<int32_t> tokens;
    tokens.reserve(static_cast<size_t>(wanted));
    for (const int32_t index : ranked(block_scores, blocks)) {
        const int64_t begin = index * block_size;
        const int64_t room = wanted - static_cast<int64_t>(tokens.size());
        const int64_t end = std::min({ begin + block_size, past, begin + room });
        for (int64_t token = begin; token < end; token++) {
            tokens.push_back(static_cast<int32_t>(token));
        }
    }
    std::sort(tokens.begin(), tokens.end());
    return tokens;
}

} // namespace cascade
