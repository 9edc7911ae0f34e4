// Chunks of queries are shared among the team; their number and their sums don't depend on it, and they are joined in
// order, so the result is the same for any number of threads.
//
// Rows are kept in tiles of 16, coordinate by coordinate: then sixteen products grow side by side, and each is summed
// in the same order wherever its row stands. Equal rows have equal scores, to the bit.
#include "attend/block_masses.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace cascade {

namespace {

constexpr int64_t lanes = 16;
constexpr int64_t chunk_rows = 16;

// Four floats side by side, which every baseline has. As a loop over an array of sixteen sums, GCC 12 gathers the
// coordinates of a row again before it multiplies, and a choice costs three times as much.
using Four = float __attribute__((vector_size(16)));

Four load(const float * values) {
    Four four;
    std::memcpy(&four, values, sizeof(four));
    return four;
}

struct Tiles {
    int64_t count = 0;
    int64_t size = 0;
    std::vector<float> values; // count x size x lanes; rows beyond the last are zeros

    Tiles(const float * rows, int64_t row_count, int64_t row_size)
        : count((row_count + lanes - 1) / lanes), size(row_size),
          values(static_cast<size_t>(count * row_size * lanes), 0.0F) {
        for (int64_t row = 0; row < row_count; row++) {
            float * tile = values.data() + (row / lanes * size * lanes);
            for (int64_t i = 0; i < size; i++) {
                tile[(i * lanes) + (row % lanes)] = rows[(row * size) + i];
            }
        }
    }

    // Products of one query with the rows of a tile.
    void multiply(int64_t tile, const float * query, float * products) const {
        const float * column = values.data() + (tile * size * lanes);
        Four a = {};
        Four b = {};
        Four c = {};
        Four d = {};
        for (int64_t i = 0; i < size; i++, column += lanes) {
            a += query[i] * load(column);
            b += query[i] * load(column + 4);
            c += query[i] * load(column + 8);
            d += query[i] * load(column + 12);
        }
        for (const Four & sum : { a, b, c, d }) {
            std::memcpy(products, &sum, sizeof(sum));
            products += 4;
        }
    }
};

void to_logits(const Logit & logit, float * values, int64_t n) {
    if (logit.soft_cap != 0.0F) {
        std::transform(values, values + n, values, logit);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        values[i] = logit.post_scale * (logit.pre_scale * values[i]);
    }
}

struct Estimate {
    const Block & block;
    const BlockIndex & index;
    Rank rank;
    Tiles past;
    Tiles recent;

    Estimate(const Block & of, const BlockIndex & by, Rank by_rank)
        : block(of), index(by), rank(by_rank), past(by.rows, by.blocks(of.past), by.size),
          recent(of.key + (of.past * of.key_size), of.tokens - of.past, of.key_size) {}

    int64_t blocks() const { return index.blocks(block.past); }
    int64_t width() const { return (past.count + recent.count) * lanes; } // of a row of products

    // Recent tokens that a query row sees.
    int64_t seen(int64_t row) const {
        return std::max<int64_t>(0, block.tokens - block.queries + (row % block.queries) + 1 - block.past);
    }

    // Products of rows begin … end - 1, tile after tile: a tile is read from near memory for all of them.
    void multiply(int64_t begin, int64_t end, float * products) const {
        for (int64_t tile = 0; tile < past.count; tile++) {
            for (int64_t row = begin; row < end; row++) {
                past.multiply(tile, index.query + (row * index.size),
                              products + ((row - begin) * width()) + (tile * lanes));
            }
        }
        for (int64_t tile = 0; tile < recent.count; tile++) {
            for (int64_t row = begin; row < end; row++) {
                if (tile * lanes < seen(row)) {
                    recent.multiply(tile, block.query + (row * block.key_size),
                                    products + ((row - begin) * width()) + ((past.count + tile) * lanes));
                }
            }
        }
    }

    // One row's shares of all blocks, added to the scores. Where the row's largest logit is subtracted, no exponential
    // overflows.
    void add_row(int64_t row, float * of_blocks, double * scores) const {
        float * of_recent = of_blocks + (past.count * lanes);
        const int64_t visible = seen(row);
        to_logits(block.logit, of_blocks, blocks());
        to_logits(block.logit, of_recent, visible);
        float largest = -std::numeric_limits<float>::infinity();
        for (int64_t i = 0; i < blocks(); i++) {
            largest = std::max(largest, of_blocks[i]);
        }
        for (int64_t i = 0; i < visible; i++) {
            largest = std::max(largest, of_recent[i]);
        }
        double total = 0.0;
        for (int64_t i = 0; i < blocks(); i++) {
            const int64_t count = std::min(index.tokens, block.past - (i * index.tokens));
            of_blocks[i] = static_cast<float>(count) * std::exp(of_blocks[i] - largest);
            total += of_blocks[i];
        }
        for (int64_t i = 0; i < visible; i++) {
            total += std::exp(of_recent[i] - largest);
        }
        const double inverse = 1.0 / total;
        for (int64_t i = 0; i < blocks(); i++) {
            const double share = of_blocks[i] * inverse;
            scores[i] = rank == Rank::sum ? scores[i] + share : std::max(scores[i], share);
        }
    }
};

} // namespace

std::vector<float> block_masses(const Block & block, const BlockIndex & index, Rank rank, Team & team) {
    const Estimate estimate(block, index, rank);
    const int64_t rows = block.group * block.queries;
    const int64_t chunks = (rows + chunk_rows - 1) / chunk_rows;
    const int64_t blocks = estimate.blocks();
    std::vector<double> of_chunks(static_cast<size_t>(chunks * blocks), 0.0);
    team.run(chunks, [&](int64_t chunk) {
        const int64_t begin = chunk * chunk_rows;
        const int64_t end = std::min(begin + chunk_rows, rows);
        std::vector<float> products(static_cast<size_t>((end - begin) * estimate.width()));
        estimate.multiply(begin, end, products.data());
        for (int64_t row = begin; row < end; row++) {
            estimate.add_row(row, products.data() + ((row - begin) * estimate.width()),
                             of_chunks.data() + (chunk * blocks));
        }
    });
    std::vector<double> scores(static_cast<size_t>(blocks), 0.0);
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
        for (int64_t i = 0; i < blocks; i++) {
            double & score = scores[static_cast<size_t>(i)];
            const double of_chunk = of_chunks[static_cast<size_t>((chunk * blocks) + i)];
            score = rank == Rank::sum ? score + of_chunk : std::max(score, of_chunk);
        }
    }
    return { scores.begin(), scores.end() };
}

} // namespace cascade
