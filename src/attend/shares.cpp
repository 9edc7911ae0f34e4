// Shares of attention that past tokens get, for rules that choose by them.
#include "attend/weights.h"

#include <algorithm>
#include <numeric>

namespace cascade {

namespace {

using attend::Weights;
using attend::WeightTile;

// Recent tokens that a query row sees, itself included; none where the block has none (earlier queries, asked again).
int64_t recent_visible(const Block & block, int64_t row) {
    return std::max<int64_t>(0, block.tokens - block.past - block.queries + (row % block.queries) + 1);
}

std::vector<float> gathered_queries(const Block & block, std::span<const int64_t> rows) {
    std::vector<float> queries(rows.size() * static_cast<size_t>(block.key_size));
    for (size_t i = 0; i < rows.size(); i++) {
        std::copy_n(block.query + (rows[i] * block.key_size), block.key_size,
                    queries.data() + (i * static_cast<size_t>(block.key_size)));
    }
    return queries;
}

// The part's rows into one score for each past token.
void reduce(const WeightTile & tile, int64_t past, Rank rank, float * scores) {
    for (int64_t i = 0; i < tile.rows; i++) {
        const float inverse = 1.0F / tile.sums[static_cast<size_t>(i)];
        const float * row = tile.row(i);
        for (int64_t k = 0; k < past; k += cover::segment, row += tile.step) {
            const int64_t count = std::min(cover::segment, past - k);
            for (int64_t j = 0; j < count; j++) {
                const float share = row[j] * inverse;
                float & score = scores[k + j];
                score = rank == Rank::largest ? std::max(score, share) : score + share;
            }
        }
    }
}

// Scores of each part by itself, then parts in order: the same for any number of threads.
std::vector<float> reduced(const Weights & weights, int64_t past, Rank rank, Team & team) {
    const auto size = static_cast<size_t>(past);
    std::vector<float> parts(static_cast<size_t>(weights.parts()) * size);
    weights.for_each_part(team, [&](int64_t part, const WeightTile & tile) {
        reduce(tile, past, rank, parts.data() + (static_cast<size_t>(part) * size));
    });
    std::vector<float> scores(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(size));
    for (int64_t part = 1; part < weights.parts(); part++) {
        const float * other = parts.data() + (static_cast<size_t>(part) * size);
        for (size_t t = 0; t < size; t++) {
            scores[t] = rank == Rank::largest ? std::max(scores[t], other[t]) : scores[t] + other[t];
        }
    }
    return scores;
}

struct Leading {
    const float * keys;
    int64_t count;
    std::span<const float> biases;
};

// Shares of the leading columns, which stand before the recent tokens.
std::vector<float> column_shares(const Block & block, const Leading & leading, std::span<const int64_t> rows, Rank rank,
                                 Team & team) {
    if (leading.count == 0) {
        return {};
    }
    const int64_t recent = block.tokens - block.past;
    std::vector<float> keys(leading.keys, leading.keys + (leading.count * block.key_size));
    keys.insert(keys.end(), block.key + (block.past * block.key_size), block.key + (block.tokens * block.key_size));
    std::vector<int64_t> chosen(rows.begin(), rows.end());
    if (chosen.empty()) {
        chosen.resize(static_cast<size_t>(block.group * block.queries));
        std::iota(chosen.begin(), chosen.end(), 0);
    }
    const std::vector<float> queries = gathered_queries(block, chosen);
    Weights::Input input;
    input.queries = queries.data();
    input.rows = static_cast<int64_t>(chosen.size());
    input.keys = keys.data();
    input.columns = leading.count + recent;
    input.size = block.key_size;
    input.biases = leading.biases;
    input.logit = block.logit;
    input.visible = [&](int64_t row) {
        return leading.count + recent_visible(block, chosen[static_cast<size_t>(row)]);
    };
    return reduced(Weights(input, team), leading.count, rank, team);
}

} // namespace

std::vector<float> past_shares(const Block & block, const float * past_keys, std::span<const int64_t> rows, Rank rank,
                               Team & team) {
    return column_shares(block, { past_keys, block.past, {} }, rows, rank, team);
}

std::vector<float> speaker_shares(const Block & block, const float * keys, std::span<const float> log_counts, Rank rank,
                                  Team & team) {
    return column_shares(block, { keys, static_cast<int64_t>(log_counts.size()), log_counts }, {}, rank, team);
}

} // namespace cascade
