// What the ways of attending on a cover share: a run of queries with all that is known of what they see.
#pragma once

#include "attend/joint/query_runs.h"
#include "cover/index/layer_index.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace cascade::attend {

// The gate's epsilon for query rows that choose together, by measurement (docs/method.md). Errors of many closed tokens
// add up to more than their estimate says, so beyond `steady` covered tokens it falls with the root of their number.
// And what one row of a group wants opened is opened for all: up to twice as much does for many rows as for a few.
inline float epsilon_for(float epsilon, int64_t covered, int64_t rows) {
    constexpr float steady = 2048.0F;
    constexpr float few = 12.0F;
    constexpr float doublings = 5.0F; // of `few`
    const float by_length = std::min(1.0F, std::sqrt(steady / static_cast<float>(std::max<int64_t>(1, covered))));
    const float by_rows = 1.0F + std::clamp(std::log2(static_cast<float>(rows) / few) / doublings, 0.0F, 1.0F);
    return epsilon * by_length * by_rows;
}

// What was read, summed over query rows of all heads: tokens that a row saw in the past, of these opened, and so on.
struct JointCounts {
    double covered = 0.0;
    double opened = 0.0;
    double speakers = 0.0;
    double exact = 0.0;       // tokens in the window
    double bytes = 0.0;       // of rough keys, opened tokens and speakers
    double dense_bytes = 0.0; // of all that is covered, at 16 bits a value
    int64_t rows = 0;

    JointCounts & operator+=(const JointCounts & other) {
        covered += other.covered;
        opened += other.opened;
        speakers += other.speakers;
        exact += other.exact;
        bytes += other.bytes;
        dense_bytes += other.dense_bytes;
        rows += other.rows;
        return *this;
    }
};

// A run of queries on one layer.
struct CoveredRun {
    const QueryRun * queries = nullptr;
    const cover::CellCover * cover = nullptr;
    const cover::RoughKeys * rough = nullptr;
    std::vector<int32_t> exact;        // cells that are not covered and that some query sees
    bool masked = false;               // not all of these are seen by all queries, with nothing added
    std::vector<uint8_t> exact_beside; // the cover's marks when `exact` was listed

    int64_t group(const Attention & a) const { return a.heads / a.kv_heads; }
    int64_t rows(const Attention & a) const { return group(a) * queries->count; } // of a KV head
};

// The logit from which on tokens are opened, by what the past and the rest weigh relative to `largest`. With Z the sum
// of all weights and P that of the past, a token that stays closed has a share below epsilon^2 / (P / Z): so the closed
// shares' squares sum up to less than epsilon^2.
inline float opening_threshold(float past, float near, float largest, float epsilon) {
    const float all = past + near;
    return past > 0.0F ? largest + std::log2(epsilon * epsilon * all * all / past)
                       : std::numeric_limits<float>::infinity();
}

// The part of `count` things, in steps of `step`, that belongs to one of `parts`.
struct Share {
    int64_t first = 0;
    int64_t last = 0;

    static Share of(int64_t count, int64_t step, int part, int parts) {
        const int64_t steps = (count + step - 1) / step;
        return { std::min(count, steps * part / parts * step), std::min(count, steps * (part + 1) / parts * step) };
    }
    int64_t count() const { return last - first; }
};

} // namespace cascade::attend
