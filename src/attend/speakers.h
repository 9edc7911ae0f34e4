// Speakers: what closed tokens leave behind, group by group. A group's speaker has the mean key and the mean value of
// its closed members, and counts as many of them as there are.
#pragma once

#include "attend/method.h"

namespace cascade::attend {

// For each past token the group it belongs to.
struct Groups {
    std::vector<int32_t> of; // past tokens
    int32_t count = 0;
};

Groups clusters_of(const Cover & cover);

// Blocks of consecutive tokens.
Groups blocks_of(int64_t past, int64_t block);

// As many random groups as wanted.
Groups random_groups(int64_t past, int64_t count, uint64_t seed);

// Adds a speaker for each group that has members left that aren't opened.
void add_speakers(const Block & block, const Groups & groups, Selection & selection);

// Opens tokens in the order given until the budget is reached, speakers included: the last closed member of a group
// takes its speaker's place for nothing.
void open_in_order(const std::vector<int32_t> & order, const Groups & groups, int64_t budget, Selection & selection);

// Tokens by falling score; of equal ones the earliest first.
std::vector<int32_t> by_falling(std::span<const float> scores);

} // namespace cascade::attend
