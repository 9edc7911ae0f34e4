// Blocks of queries over random keys and values, with a random cover of their past.
#pragma once

#include "attend/method.h"

#include <algorithm>
#include <ostream>
#include <random>
#include <vector>

namespace cascade::test {

struct BlockShape {
    int64_t queries = 1;
    int64_t group = 1;
    int64_t past = 0;
    int64_t window = 0;
    int64_t key_size = 1;
    int64_t value_size = 1;
};

inline std::ostream & operator<<(std::ostream & out, const BlockShape & shape) {
    return out << shape.queries << " queries x " << shape.group << ", past " << shape.past << ", window "
               << shape.window << ", keys of " << shape.key_size << ", values of " << shape.value_size;
}

inline int64_t pick(std::mt19937_64 & random, int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
}

inline BlockShape random_shape(std::mt19937_64 & random) {
    return { pick(random, 1, 70), pick(random, 1, 4),  pick(random, 0, 90),
             pick(random, 0, 40), pick(random, 1, 70), pick(random, 1, 70) };
}

inline std::vector<float> normal_floats(std::mt19937_64 & random, int64_t count, float spread = 1.0F) {
    std::normal_distribution<float> normal(0.0F, spread);
    std::vector<float> values(static_cast<size_t>(count));
    std::generate(values.begin(), values.end(), [&] { return normal(random); });
    return values;
}

// Some tokens, the first among them, and for each token one of them at or before it.
inline Cover random_cover(std::mt19937_64 & random, int64_t tokens, int64_t size) {
    Cover cover;
    std::vector<int32_t> others;
    for (int32_t token = 1; token < tokens; token++) {
        others.push_back(token);
    }
    std::shuffle(others.begin(), others.end(), random);
    cover.representatives = { 0 };
    cover.representatives.insert(cover.representatives.end(), others.begin(),
                                 others.begin() + std::min(size, tokens) - 1);
    std::sort(cover.representatives.begin(), cover.representatives.end());
    std::uniform_real_distribution<float> similarity(0.0F, 0.99F);
    for (int32_t token = 0; token < tokens; token++) {
        const auto end = std::upper_bound(cover.representatives.begin(), cover.representatives.end(), token);
        const bool chosen = *(end - 1) == token;
        const auto place = static_cast<size_t>(pick(random, 0, (end - cover.representatives.begin()) - 1));
        cover.assigned.push_back(chosen ? token : cover.representatives[place]);
        cover.similarity.push_back(chosen ? 1.0F : similarity(random));
    }
    return cover;
}

// Owns what a block points to.
struct MadeBlock {
    MadeBlock(const BlockShape & shape, uint64_t seed, float key_spread = 1.0F) {
        std::mt19937_64 random(seed);
        block.queries = shape.queries, block.group = shape.group, block.past = shape.past;
        block.tokens = shape.past + shape.window + shape.queries;
        block.key_size = shape.key_size, block.value_size = shape.value_size;
        query = normal_floats(random, shape.group * shape.queries * shape.key_size);
        key = normal_floats(random, block.tokens * shape.key_size, key_spread);
        value = normal_floats(random, block.tokens * shape.value_size);
        block.query = query.data(), block.key = key.data(), block.value = value.data();
        block.logit.pre_scale = 0.4F;
        block.seed = seed;
        if (shape.past > 0) {
            cover = random_cover(random, shape.past, pick(random, 1, std::max<int64_t>(1, shape.past / 8)));
            block.cover = &cover;
        }
    }
    MadeBlock(const MadeBlock &) = delete;
    MadeBlock & operator=(const MadeBlock &) = delete;

    Block block;
    Cover cover;
    std::vector<float> query;
    std::vector<float> key;
    std::vector<float> value;
};

// Each past token with a chance of one in `of`; 0: none, 1: all.
inline std::vector<int32_t> random_opened(std::mt19937_64 & random, int64_t past, int64_t of) {
    std::vector<int32_t> opened;
    for (int32_t token = 0; token < past; token++) {
        if (of > 0 && pick(random, 1, of) == 1) {
            opened.push_back(token);
        }
    }
    return opened;
}

} // namespace cascade::test
