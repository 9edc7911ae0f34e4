// Covers: a few tokens chosen to speak for all. Arrays and numbers only: no model, no engine.
//
// Two tokens are as similar as their rows' cosine (its absolute value, unless the sign is kept). With a threshold tau
// in (0, 1), one token can speak for another where their similarity is at least 1 - tau^2.
//
// A cosine here is defined to the bit (src/cover/unit_row.h, plain.cpp): rows are scaled to unit length by a factor
// found in double, then multiplied in the order of their values with fused multiply-adds in float. So covers are equal
// on every instruction set, for any number of threads and for any blocking. That sum is good to about 1e-5: a tau below
// 0.01 has no meaning.
//
// A row of zeros, or with a value that isn't finite, resembles nothing: it speaks for itself alone, in every method.
#pragma once

#include "cascade/team.h"

#include <cstdint>
#include <span>
#include <vector>

namespace cascade {

// Rows that a cover can be chosen on; keys before their rotation by position.
enum class Source { residual, normalised, key, value };

// One row for each token; `stride` floats from a row to the next.
struct TokenRows {
    const float * data = nullptr;
    int64_t tokens = 0;
    int64_t size = 0;
    int64_t stride = 0;

    const float * row(int64_t token) const { return data + (token * stride); }

    // The part of every row that belongs to one of `heads` equal heads: for a cover of each head.
    TokenRows head(int64_t index, int64_t heads) const {
        return { data + (index * (size / heads)), tokens, size / heads, stride };
    }
};

enum class Sign {
    ignored, // |G|, as the paper has it
    kept,    // G: an opposite row is not similar
};

struct CoverOptions {
    double tau = 0.30;
    Sign sign = Sign::ignored;

    float threshold() const { return static_cast<float>(1.0 - (tau * tau)); }
};

struct Cover {
    std::vector<int32_t> representatives; // tokens, ascending
    std::vector<int32_t> assigned;        // for each token, the one that speaks for it; itself for a representative
    std::vector<float> similarity;        // to that one; 1 to itself

    int64_t tokens() const { return static_cast<int64_t>(assigned.size()); }
    int64_t size() const { return static_cast<int64_t>(representatives.size()); }
};

// What a choice cost.
struct Work {
    uint64_t gram_entries = 0;  // as the paper counts: T^2 for threshold, T r with an inherited set of r; leader: T r
    uint64_t multiply_adds = 0; // what was really multiplied, assignment included

    Work & operator+=(const Work & other) {
        gram_entries += other.gram_entries;
        multiply_adds += other.multiply_adds;
        return *this;
    }
};

// All of these throw std::invalid_argument where tau is not in (0, 1), or so near to an end that 1 - tau^2 is 0 or 1,
// where there are more than 2^31 - 1 tokens, or where the cover of the layer below doesn't fit; `work`, where given, is
// added to.

// Definition 1 to the letter: a token is a representative where its similarity to every earlier token is below the
// threshold. Assigned to the nearest representative anywhere. No true cover: the similar earlier token need not be a
// representative itself.
Cover threshold_cover(const TokenRows & rows, const CoverOptions & options, Team & team, Work * work = nullptr);

// Online and a true cover: a token is a representative where its similarity to every earlier *representative* is
// below the threshold. Assigned to the nearest earlier one. The cover of a prefix is the prefix of the cover.
Cover leader_cover(const TokenRows & rows, const CoverOptions & options, Team & team, Work * work = nullptr);

// The leader cover with as many representatives as a few tries find, up to `count` (at least 1) and hardly below it.
// `tau` is tried first, and is the one found afterwards: neighbouring covers take few tries. Where no threshold gives
// so few, the first `count` of the smallest cover, each token assigned to the nearest of them anywhere.
Cover sized_cover(const TokenRows & rows, int64_t count, Sign sign, double & tau, Team & team);

enum class InheritForm {
    printed, // Algorithm 1 to the letter: no cover (see docs/method.md); assigned to the nearest anywhere
    causal,  // the smallest change that makes a cover: validated in order, compared with earlier tokens only
    linked,  // a cover that first tests each token's link: with whoever speaks now for the representative it had in
             // the layer below; and searches among all earlier ones only where that fails
};

struct Inherited {
    Cover cover;
    int64_t inherited = 0; // representatives of the layer below
    int64_t adds = 0;
    int64_t removes = 0;

    // Of the inherited set; 0 where that is empty.
    double turnover() const {
        return inherited > 0 ? static_cast<double>(adds + removes) / static_cast<double>(inherited) : 0.0;
    }
};

// The cover of a layer from that of the layer below.
Inherited inherit_cover(const TokenRows & rows, const Cover & below, InheritForm form, const CoverOptions & options,
                        Team & team, Work * work = nullptr);

enum class Reach {
    anywhere,
    earlier, // the token itself included
};

// A given set of representatives, and for each token the nearest of them; a token that has none in reach is assigned
// to -1 with similarity 0. Controls are made of it: a set inherited without validation, a random one.
// `representatives` must be ascending tokens; throws std::invalid_argument otherwise.
Cover assign(const TokenRows & rows, std::span<const int32_t> representatives, Reach reach,
             const CoverOptions & options, Team & team, Work * work = nullptr);

// `count` different tokens, ascending, equally likely; the same for the same seed on every machine.
std::vector<int32_t> random_representatives(int64_t tokens, int64_t count, uint64_t seed);

// The paper's section 8.1, as a rule: a layer whose set hardly changed takes a higher tau (fewer representatives) in
// the next layer, one with a high turnover a lower one. tau moves by the fourth root of target / turnover, at most by
// 2^(1/4) at a time, and stays within a factor of two of where it began (and below 0.95).
double adapted_tau(double tau, double start, double turnover, double target = 0.10);

// |A and B| / |A or B|; 1 where both are empty. Both ascending.
double jaccard(std::span<const int32_t> a, std::span<const int32_t> b);

// How many of `wanted` are not in `set`. Both ascending.
int64_t missing_from(std::span<const int32_t> set, std::span<const int32_t> wanted);

// Tokens that no representative at or before them can speak for: 0 in a true cover.
int64_t uncovered_tokens(const TokenRows & rows, std::span<const int32_t> representatives, const CoverOptions & options,
                         Team & team);

// The instruction set that covers are computed with: "avx512", "avx2", "neon", …, or "plain". The best that the machine
// has, unless the variable CASCADE_ISA or `use_isa` says otherwise. use_isa returns false for one that isn't there, and
// is not to be called while a cover is being chosen.
const char * isa_in_use();
bool use_isa(const char * name);
std::vector<const char *> available_isas();

} // namespace cascade
