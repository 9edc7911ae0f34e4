#include "evaluate/bootstrap.h"

#include "evaluate/random.h"

#include <algorithm>

namespace cascade::evaluate {

namespace {

constexpr uint64_t seed = 20260131;

Sums sums_of(const Scores & scores, size_t begin, size_t end) {
    Sums sums;
    for (size_t i = begin; i < end; i++) {
        sums.kl += static_cast<double>(scores.kl[i]);
        sums.same_top += scores.same_top[i] != 0 ? 1.0 : 0.0;
        sums.nll += static_cast<double>(scores.nll[i]);
    }
    return sums;
}

Sums mean_of(const BlockSums & blocks, const std::vector<size_t> & drawn, double tokens) {
    Sums sums;
    for (const size_t block : drawn) {
        sums.kl += blocks[block].kl;
        sums.same_top += blocks[block].same_top;
        sums.nll += blocks[block].nll;
    }
    return { sums.kl / tokens, sums.same_top / tokens, sums.nll / tokens };
}

double sum_of(const std::vector<double> & values, const std::vector<size_t> & drawn) {
    double sum = 0.0;
    for (const size_t block : drawn) {
        sum += values[block];
    }
    return sum;
}

} // namespace

int64_t block_length(int64_t tokens) { return std::max<int64_t>(1, std::min(bootstrap_block, (tokens + 1) / 2)); }

Blocks blocks_of(const Evaluation & evaluation) {
    Blocks blocks;
    blocks.methods.resize(evaluation.labels.size());
    for (const Window & window : evaluation.windows) {
        const size_t tokens = window.dense_nll.size();
        const auto length = static_cast<size_t>(block_length(static_cast<int64_t>(tokens)));
        for (size_t begin = 0; begin < tokens; begin += length) {
            const size_t end = std::min(tokens, begin + length);
            double dense = 0.0;
            for (size_t i = begin; i < end; i++) {
                dense += static_cast<double>(window.dense_nll[i]);
            }
            blocks.tokens.push_back(static_cast<double>(end - begin));
            blocks.dense_nll.push_back(dense);
            for (size_t m = 0; m < blocks.methods.size(); m++) {
                blocks.methods[m].push_back(sums_of(window.methods[m].scores, begin, end));
            }
        }
    }
    return blocks;
}

Draws draw(const Blocks & blocks) {
    Draws draws;
    draws.methods.resize(blocks.methods.size());
    const size_t count = blocks.tokens.size();
    if (count < 2) {
        return draws;
    }
    Random generator(seed);
    std::vector<size_t> drawn(count);
    for (int i = 0; i < bootstrap_draws; i++) {
        std::generate(drawn.begin(), drawn.end(), [&] { return generator.below(count); });
        const double tokens = sum_of(blocks.tokens, drawn);
        draws.dense_nll.push_back(sum_of(blocks.dense_nll, drawn) / tokens);
        for (size_t m = 0; m < blocks.methods.size(); m++) {
            draws.methods[m].push_back(mean_of(blocks.methods[m], drawn, tokens));
        }
    }
    return draws;
}

Interval percentiles(std::vector<double> values) {
    if (values.empty()) {
        return {};
    }
    std::sort(values.begin(), values.end());
    return { quantile(values, 0.025), quantile(values, 0.975) };
}

} // namespace cascade::evaluate
