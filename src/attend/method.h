// How attention may read less than everything: each method is a rule that chooses, for a block of queries and one KV
// head, what of the past is read. Arrays and numbers only; plain versions, to be measured and compared.
//
// A block is `queries` consecutive tokens of the `group` query heads that share a KV head. Tokens before `past` are the
// past: every query of the block sees all of them. The recent ones, from `past` to the block's end (an exact window and
// the block itself), are read exactly and causally whatever the method: query i sees the recent tokens up to
// tokens - queries + i.
#pragma once

#include "cascade/cover.h"
#include "cascade/team.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace cascade {

// From a product of query and key to a logit.
struct Logit {
    float pre_scale = 1.0F;
    float soft_cap = 0.0F; // 0: none
    float post_scale = 1.0F;

    float operator()(float product) const;
};

struct Block {
    int64_t queries = 0;
    int64_t group = 1;
    int64_t past = 0;
    int64_t tokens = 0; // past and recent
    int64_t key_size = 0;
    int64_t value_size = 0;
    const float * query = nullptr;         // group x queries rows, one head after the other
    const float * key = nullptr;           // a row for each token
    const float * value = nullptr;         // a row for each token
    const float * earlier_query = nullptr; // group x earlier_queries rows: the last ones before the block
    int64_t earlier_queries = 0;
    const Cover * cover = nullptr; // of the past, for methods that ask for one
    Logit logit;
    uint64_t seed = 0; // different for each layer, head and block, the same in every run
};

// What a block reads of the past.
struct Selection {
    std::vector<int32_t> opened; // past tokens read exactly, ascending

    // Speakers stand for tokens that stayed closed: a key, a value and the logarithm of how many they stand for.
    std::vector<float> keys;       // speakers x key_size
    std::vector<float> values;     // speakers x value_size
    std::vector<float> log_counts; // speakers

    double index_bits = 0.0; // read for each past token to choose, beside the rows above

    int64_t speakers() const { return static_cast<int64_t>(log_counts.size()); }
    int64_t read() const { return static_cast<int64_t>(opened.size()) + speakers(); }
};

enum class Rank {
    largest, // a token counts by the largest share that any single query gives it
    sum,     // by the sum over all queries of the block
};

enum class Rest {
    cover,  // closed tokens are spoken for by their cluster
    blocks, // by the mean of their block of 32
    groups, // by the mean of a random group, as many as there are clusters
    mean,   // by one single mean
    drop,   // not at all
};

// What a person can say of a method; each has its defaults in methods.cpp.
struct MethodOptions {
    double budget = 0.25;    // share of the past that may be read
    double epsilon = -1.0;   // from 0 on: joint opens every token that some query gives at least this share instead
    double cover = 0.25;     // refine, joint: share of the budget that goes to the cover
    int bits = 4;            // joint: of a coordinate of a compressed key; 16: as it is
    int64_t coordinates = 0; // joint: leading ones of the keys' own basis; 0: all, unrotated
    Rank rank = Rank::largest;
    Rest rest = Rest::cover;
    int64_t block = 16;  // blocks, quest, sampled: tokens of a block
    int64_t sample = 16; // sampled: queries; snapkv: earlier queries that are asked
    int64_t sinks = 4;   // streaming: first tokens, always read
};

// How many of the past tokens a budget lets a block read: rounded, at least 1 where there is any.
int64_t tokens_in_budget(const Block & block, double budget);

// The tokens with the largest scores, ascending; of equal ones the earliest.
std::vector<int32_t> best_tokens(std::span<const float> scores, int64_t count);

// Blocks of `block_size` past tokens by falling score until `count` tokens are reached, the last one only in part (its
// first tokens); ascending. Of equal scores the earliest.
std::vector<int32_t> best_blocks(std::span<const float> block_scores, int64_t past, int64_t block_size, int64_t count);

// The share of a query's attention that each past token gets, by the keys given (past rows; the recent ones are exact),
// over the query rows listed (empty: all): the largest or the sum. The keys may be compressed ones.
std::vector<float> past_shares(const Block & block, const float * past_keys, std::span<const int64_t> rows, Rank rank,
                               Team & team);

// The same for speakers in the past's place, with what they count added to their logits.
std::vector<float> speaker_shares(const Block & block, const float * keys, std::span<const float> log_counts, Rank rank,
                                  Team & team);

// The rules. Each reads tokens_in_budget(budget) of the past, or fewer where the rule itself can't use them.
Selection select_streaming(const Block & block, const MethodOptions & options, Team & team);
Selection select_snapkv(const Block & block, const MethodOptions & options, Team & team);
Selection select_blocks(const Block & block, const MethodOptions & options, Team & team);
Selection select_quest(const Block & block, const MethodOptions & options, Team & team);
Selection select_sampled(const Block & block, const MethodOptions & options, Team & team);
Selection select_random(const Block & block, const MethodOptions & options, Team & team);
Selection select_oracle(const Block & block, const MethodOptions & options, Team & team);
Selection select_proportional(const Block & block, const MethodOptions & options, Team & team);
Selection select_refine(const Block & block, const MethodOptions & options, Team & team);
Selection select_joint(const Block & block, const MethodOptions & options, Team & team);

// The block's attention on a selection: group x queries rows of value_size floats, as the queries stand.
void attend_selection(const Block & block, const Selection & selection, float * out, Team & team);

} // namespace cascade
