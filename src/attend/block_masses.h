// How much of the queries' attention each block of past tokens would get if one row spoke for all of its tokens: what
// the rules that keep an index of blocks (blocks.cpp, quest.cpp) have in common.
#pragma once

#include "attend/method.h"

#include <cstdint>
#include <vector>

namespace cascade {

// A row for each block of `tokens` past tokens (the last may be short), and the queries to multiply it with: the same
// number of rows as the block has, in the same order, but perhaps not of the keys' size.
struct BlockIndex {
    int64_t tokens = 16;
    int64_t size = 0;              // values of a row
    const float * rows = nullptr;  // one for each block
    const float * query = nullptr; // group x queries

    int64_t blocks(int64_t past) const { return (past + tokens - 1) / tokens; }
};

// A query's estimated mass of a block is its number of tokens times exp(logit(<query, row>)); the share is that over
// the sum of all blocks' and of the recent tokens' exact ones. Over all queries: the largest or the sum.
std::vector<float> block_masses(const Block & block, const BlockIndex & index, Rank rank, Team & team);

} // namespace cascade
