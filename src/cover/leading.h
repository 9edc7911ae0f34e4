// Choosing leaders among a sequence of tokens, beside others that already lead.
#pragma once

#include "cover/products.h"

#include <span>
#include <vector>

namespace cascade::cover {

// What all parts of a choice share.
struct Choice {
    const TokenRows & rows;
    const CoverOptions & options;
    Team & team;
    Count multiply_adds{ 0 };

    // tau in (0, 1), sizes that fit; throws std::invalid_argument.
    void check() const;
};

bool strictly_ascending(std::span<const int32_t> tokens);

// 0, 1, …, count - 1.
std::vector<int32_t> all_tokens(int64_t count);

// For each of `tokens` (ascending) the nearest column in its reach: all of them, those of earlier tokens, or those up
// to the token itself. Best::column is -1 where there is none.
enum class Bound { none, before, up_to };
std::vector<Best> nearest(Choice & choice, std::span<const int32_t> tokens, const Columns & columns, Bound bound);

struct Led {
    std::vector<int32_t> leaders;  // found, ascending
    Columns columns;               // of the leaders
    std::vector<int32_t> assigned; // for each token of the sequence: its nearest earlier leader, or itself
    std::vector<float> similarity;
};

// Goes through `sequence` (ascending) in order: a token becomes a leader where no earlier one, given or found, is as
// similar as the threshold. `given` are columns of tokens that lead already, in order, none of them in the sequence.
Led lead(Choice & choice, std::span<const int32_t> sequence, const Columns & given);

} // namespace cascade::cover
