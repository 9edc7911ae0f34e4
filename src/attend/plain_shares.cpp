// Shares of attention by the definition: a softmax over all past tokens (by the keys given) and over the recent tokens
// that the query sees (by their own keys), of which the past's part is kept. Written to be read.
#include "attend/plain_shares.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cascade {

namespace {

double logit_of(const Block & block, const float * query, const float * key) {
    double product = 0.0;
    for (int64_t i = 0; i < block.key_size; i++) {
        product += static_cast<double>(query[i]) * key[i];
    }
    double x = block.logit.pre_scale * product;
    if (block.logit.soft_cap != 0.0F) {
        x = block.logit.soft_cap * std::tanh(x);
    }
    return block.logit.post_scale * x;
}

// What one query row gives each past token.
void shares_of_row(const Block & block, const float * past_keys, int64_t row, std::vector<double> & shares) {
    const float * query = block.query + (row * block.key_size);
    const int64_t seen = block.tokens - block.queries + (row % block.queries) + 1; // tokens, from the first on
    shares.clear();
    for (int64_t token = 0; token < std::max(block.past, seen); token++) {
        const float * keys = token < block.past ? past_keys : block.key;
        shares.push_back(logit_of(block, query, keys + (token * block.key_size)));
    }
    double largest = -std::numeric_limits<double>::infinity();
    for (const double logit : shares) {
        largest = std::max(largest, logit);
    }
    double total = 0.0;
    for (double & share : shares) {
        share = std::exp(share - largest);
        total += share;
    }
    shares.resize(static_cast<size_t>(block.past));
    for (double & share : shares) {
        share /= total;
    }
}

} // namespace

std::vector<float> past_shares_plain(const Block & block, const float * past_keys, std::span<const int64_t> rows,
                                     Rank rank) {
    std::vector<double> result(static_cast<size_t>(block.past), 0.0);
    std::vector<double> shares;
    shares.reserve(static_cast<size_t>(block.tokens));
    const int64_t count = rows.empty() ? block.group * block.queries : static_cast<int64_t>(rows.size());
    for (int64_t i = 0; i < count; i++) {
        shares_of_row(block, past_keys, rows.empty() ? i : rows[static_cast<size_t>(i)], shares);
        for (size_t token = 0; token < result.size(); token++) {
            const double so_far = result[token];
            result[token] = rank == Rank::sum ? so_far + shares[token] : std::max(so_far, shares[token]);
        }
    }
    return { result.begin(), result.end() };
}

} // namespace cascade
