// MoBA (Lu et al., "Mixture of Block Attention for Long-Context LLMs"): a block of past tokens is known by its mean
// key. Ours weighs a block by the attention that its mean would get, where the paper takes the product alone, and
// chooses once for all queries of a block, not for each: what is read is what counts here.
#include "attend/block_masses.h"

#include <algorithm>

namespace cascade {

namespace {

std::vector<float> mean_keys(const Block & block, int64_t size) {
    const int64_t blocks = (block.past + size - 1) / size;
    std::vector<float> means(static_cast<size_t>(blocks * block.key_size));
    std::vector<double> sums(static_cast<size_t>(block.key_size));
    for (int64_t begin = 0; begin < block.past; begin += size) {
        const int64_t end = std::min(begin + size, block.past);
        std::fill(sums.begin(), sums.end(), 0.0);
        for (int64_t token = begin; token < end; token++) {
            const float * key = block.key + (token * block.key_size);
            for (size_t i = 0; i < sums.size(); i++) {
                sums[i] += key[i];
            }
        }
        float * mean = means.data() + (begin / size * block.key_size);
        for (size_t i = 0; i < sums.size(); i++) {
            mean[i] = static_cast<float>(sums[i] / static_cast<double>(end - begin));
        }
    }
    return means;
}

} // namespace

Selection select_blocks(const Block & block, const MethodOptions & options, Team & team) {
    Selection selection;
    if (block.past <= 0) {
        return selection;
    }
    BlockIndex index;
    index.tokens = std::max<int64_t>(1, options.block);
    index.size = block.key_size;
    const std::vector<float> means = mean_keys(block, index.tokens);
    index.rows = means.data();
    index.query = block.query;
    const std::vector<float> masses = block_masses(block, index, options.rank, team);
    selection.opened = best_blocks(masses, block.past, index.tokens, tokens_in_budget(block, options.budget));
    selection.index_bits = 16.0 * static_cast<double>(block.key_size) / static_cast<double>(index.tokens);
    return selection;
}

} // namespace cascade
