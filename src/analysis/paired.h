// Two ways to do the same work, timed side by side round after round: how much faster one of them is.
#pragma once

#include "analysis/figures.h"

#include <cstddef>
#include <span>

namespace cascade::analysis {

struct PairedRatio {
    double ratio = not_measured; // speed of the other over the base: 2 is twice as fast
    double low = not_measured;   // its interval
    double high = not_measured;
    double level = 0.0; // how often such an interval holds the true ratio; below what was asked for with few rounds
    size_t rounds = 0;
};

// From the seconds of each round. Ratios are taken within rounds, so that what slows a whole round falls on both sides.
//
// The ratio is the median of the geometric means of all pairs of rounds (Hodges and Lehmann), its interval the one of
// Wilcoxon's signed rank test: exact for any number of rounds and any noise, if noise is as likely to hit one side as
// the other, which turns in changing order see to. A bootstrap of the median was tried instead: with 13 rounds, what it
// calls 99 % holds the true ratio 97.8 % of the time.
PairedRatio paired_ratio(std::span<const double> base_seconds, std::span<const double> other_seconds, double level);

double median_of(std::span<const double> values);

} // namespace cascade::analysis
