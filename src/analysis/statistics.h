// Figures over windows of text.
#pragma once

#include "analysis/figures.h"

#include <span>

namespace cascade::analysis {

struct Estimate {
    double mean = not_measured;
    double sd = not_measured;  // of the sample; from two windows on
    double low = not_measured; // 95 % interval of the mean, Student's t; from two windows on
    double high = not_measured;
};

// Values that weren't measured are left out.
Estimate estimate(std::span<const double> values);

// A series' summary in one window.
struct Summary {
    double mean_r = not_measured;
    double mean_r_share = not_measured;
    double mean_jaccard = not_measured; // of consecutive layers
    double mean_jaccard_independent = not_measured;
    double mean_turnover = not_measured;
    double mean_growth = not_measured;
    double missed = not_measured; // the whole model's
    double uncovered = not_measured;
    double gram_entries = not_measured;
    double gram_savings = not_measured; // against T^2 in every layer
    double multiply_adds = not_measured;
    double seconds = not_measured;
    double mean_copy_error = not_measured;
};

Summary summarise(const Series & series, int64_t tokens);

} // namespace cascade::analysis
