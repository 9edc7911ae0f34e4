#include "analysis/statistics.h"

#include <array>
#include <numeric>

namespace cascade::analysis {

namespace {

// Two-sided 95 % quantiles of Student's t for 1, 2, … degrees of freedom; beyond, near enough.
double student_95(size_t degrees) {
    constexpr std::array quantiles = { 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                       2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                                       2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042 };
    return degrees <= quantiles.size() ? quantiles[degrees - 1] : 1.96 + (2.4 / static_cast<double>(degrees));
}

std::vector<double> measured(const Series & series, Figure figure) {
    std::vector<double> values;
    for (const Figures & layer : series.layers) {
        if (!std::isnan(layer[figure])) {
            values.push_back(layer[figure]);
        }
    }
    return values;
}

double sum_of(const Series & series, Figure figure) {
    const auto values = measured(series, figure);
    return values.empty() ? not_measured : std::accumulate(values.begin(), values.end(), 0.0);
}

double mean_of(const Series & series, Figure figure) {
    const auto values = measured(series, figure);
    return values.empty() ? not_measured : sum_of(series, figure) / static_cast<double>(values.size());
}

} // namespace

Estimate estimate(std::span<const double> values) {
    Estimate result;
    double sum = 0.0;
    size_t count = 0;
    for (const double value : values) {
        if (!std::isnan(value)) {
            sum += value;
            count++;
        }
    }
    if (count == 0) {
        return result;
    }
    const auto n = static_cast<double>(count);
    result.mean = sum / n;
    if (count < 2) {
        return result;
    }
    double squares = 0.0;
    for (const double value : values) {
        squares += std::isnan(value) ? 0.0 : (value - result.mean) * (value - result.mean);
    }
    result.sd = std::sqrt(squares / (n - 1.0));
    const double half = student_95(count - 1) * result.sd / std::sqrt(n);
    result.low = result.mean - half;
    result.high = result.mean + half;
    return result;
}

Summary summarise(const Series & series, int64_t tokens) {
    const auto t = static_cast<double>(tokens);
    const auto layers = static_cast<double>(series.layers.size());
    Summary summary;
    summary.mean_r = mean_of(series, Figure::r);
    summary.mean_r_share = summary.mean_r / t;
    summary.mean_jaccard = mean_of(series, Figure::jaccard_previous);
    summary.mean_jaccard_independent = mean_of(series, Figure::jaccard_independent);
    summary.mean_turnover = mean_of(series, Figure::turnover);
    summary.mean_growth = mean_of(series, Figure::growth);
    summary.missed = sum_of(series, Figure::missed);
    summary.uncovered = sum_of(series, Figure::uncovered);
    summary.gram_entries = sum_of(series, Figure::gram_entries);
    summary.gram_savings = 1.0 - (summary.gram_entries / (layers * t * t));
    summary.multiply_adds = sum_of(series, Figure::multiply_adds);
    summary.seconds = sum_of(series, Figure::seconds);
    summary.mean_copy_error = mean_of(series, Figure::copy_error);
    return summary;
}

} // namespace cascade::analysis
