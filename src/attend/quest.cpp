// Quest (Tang et al., "Query-Aware Sparsity for Efficient Long-Context LLM Inference"): a block of past tokens is known
// by the smallest and the largest value of each key coordinate, which bound the product of a query with any of its
// keys. Ours turns the bound into a mass, and chooses once for all queries of a block.
//
// The bound, the sum of max(q_i * smallest_i, q_i * largest_i), is one product of twice the size: of the query's
// positive part with the largest values, and of its negative part with the smallest. It bounds the logit where the
// scales are positive.
#include "attend/block_masses.h"

#include <algorithm>

namespace cascade {

namespace {

// For each block the largest values, then the smallest.
std::vector<float> bounds(const Block & block, int64_t size) {
    const int64_t blocks = (block.past + size - 1) / size;
    std::vector<float> rows(static_cast<size_t>(blocks * 2 * block.key_size));
    for (int64_t begin = 0; begin < block.past; begin += size) {
        const float * first = block.key + (begin * block.key_size);
        float * largest = rows.data() + (begin / size * 2 * block.key_size);
        float * smallest = largest + block.key_size;
        std::copy(first, first + block.key_size, largest);
        std::copy(first, first + block.key_size, smallest);
        for (int64_t token = begin + 1; token < std::min(begin + size, block.past); token++) {
            const float * key = block.key + (token * block.key_size);
            for (int64_t i = 0; i < block.key_size; i++) {
                largest[i] = std::max(largest[i], key[i]);
                smallest[i] = std::min(smallest[i], key[i]);
            }
        }
    }
    return rows;
}

// Each query's positive part, then its negative.
std::vector<float> split_queries(const Block & block) {
    const int64_t rows = block.group * block.queries;
    std::vector<float> split(static_cast<size_t>(rows * 2 * block.key_size));
    for (int64_t row = 0; row < rows; row++) {
        const float * query = block.query + (row * block.key_size);
        float * positive = split.data() + (row * 2 * block.key_size);
        float * negative = positive + block.key_size;
        for (int64_t i = 0; i < block.key_size; i++) {
            positive[i] = std::max(query[i], 0.0F);
            negative[i] = std::min(query[i], 0.0F);
        }
    }
    return split;
}

} // namespace

Selection select_quest(const Block & block, const MethodOptions & options, Team & team) {
    Selection selection;
    if (block.past <= 0) {
        return selection;
    }
    BlockIndex index;
    index.tokens = std::max<int64_t>(1, options.block);
    index.size = 2 * block.key_size;
    const std::vector<float> rows = bounds(block, index.tokens);
    const std::vector<float> queries = split_queries(block);
    index.rows = rows.data();
    index.query = queries.data();
    const std::vector<float> masses = block_masses(block, index, options.rank, team);
    selection.opened = best_blocks(masses, block.past, index.tokens, tokens_in_budget(block, options.budget));
    selection.index_bits = 2.0 * 16.0 * static_cast<double>(block.key_size) / static_cast<double>(index.tokens);
    return selection;
}

} // namespace cascade
