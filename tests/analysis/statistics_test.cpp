// Figures over windows against values worked out by hand.
#include "analysis/statistics.h"

#include <gtest/gtest.h>
#include <vector>

namespace cascade::analysis {
namespace {

Estimate estimate_of(const std::vector<double> & values) { return estimate(values); }

TEST(Estimate, MeanDeviationAndIntervalByHand) {
    const Estimate four = estimate_of({ 1.0, 2.0, 3.0, 4.0 });
    EXPECT_DOUBLE_EQ(four.mean, 2.5);
    EXPECT_NEAR(four.sd, 1.2909944487, 1e-9);     // sqrt(5 / 3)
    EXPECT_NEAR(four.low, 2.5 - 2.0539722, 1e-6); // 3.182 * 1.2909944 / 2, Student's t of 3 degrees
    EXPECT_NEAR(four.high, 2.5 + 2.0539722, 1e-6);

    const Estimate two = estimate_of({ 5.0, 7.0 });
    EXPECT_DOUBLE_EQ(two.mean, 6.0);
    EXPECT_NEAR(two.sd, 1.41421356, 1e-8);
    EXPECT_NEAR(two.high - two.mean, 12.706, 1e-9); // sd / sqrt(2) is 1

    const Estimate same = estimate_of({ 3.0, 3.0, 3.0 });
    EXPECT_EQ(same.sd, 0.0);
    EXPECT_EQ(same.low, 3.0);
    EXPECT_EQ(same.high, 3.0);
}

TEST(Estimate, OneValueHasNoInterval) {
    const Estimate one = estimate_of({ 4.0 });
    EXPECT_EQ(one.mean, 4.0);
    EXPECT_TRUE(std::isnan(one.sd));
    EXPECT_TRUE(std::isnan(one.low));
    EXPECT_TRUE(std::isnan(one.high));
}

TEST(Estimate, WhatWasNotMeasuredIsLeftOut) {
    const Estimate with = estimate_of({ not_measured, 5.0, not_measured, 7.0 });
    const Estimate without = estimate_of({ 5.0, 7.0 });
    EXPECT_EQ(with.mean, without.mean);
    EXPECT_EQ(with.sd, without.sd);
    EXPECT_EQ(with.low, without.low);
    EXPECT_EQ(with.high, without.high);
    EXPECT_TRUE(std::isnan(estimate_of({ 2.0, not_measured }).sd));
    EXPECT_TRUE(std::isnan(estimate_of({ not_measured, not_measured }).mean));
    EXPECT_TRUE(std::isnan(estimate_of({}).mean));
}

// Thirty degrees are the last of the table; many are the normal's.
TEST(Estimate, IntervalsOfManyWindows) {
    for (const auto & [count, quantile] : { std::pair{ 31, 2.042 }, std::pair{ 2000, 1.961 } }) {
        std::vector<double> values;
        values.reserve(static_cast<size_t>(count));
        for (int i = 0; i < count; i++) {
            values.push_back(i % 2 == 0 ? 1.0 : -1.0);
        }
        const Estimate many = estimate_of(values);
        const double half = (many.high - many.low) / 2.0;
        EXPECT_NEAR(half / (many.sd / std::sqrt(count)), quantile, 0.002) << count;
    }
}

Series two_layers() {
    Series series;
    series.method = Method::inherit;
    Figures first;
    first[Figure::r] = 40.0;
    first[Figure::jaccard_independent] = 1.0;
    first[Figure::growth] = 1.0;
    first[Figure::missed] = 0.0;
    first[Figure::uncovered] = 2.0;
    first[Figure::gram_entries] = 10000.0;
    first[Figure::multiply_adds] = 7.0;
    first[Figure::seconds] = 0.5;
    Figures second = first;
    second[Figure::r] = 60.0;
    second[Figure::turnover] = 0.5;
    second[Figure::jaccard_previous] = 0.8;
    second[Figure::jaccard_independent] = 0.5;
    second[Figure::growth] = 1.5;
    second[Figure::missed] = 3.0;
    second[Figure::gram_entries] = 4000.0;
    second[Figure::copy_error] = 0.25;
    series.layers = { first, second };
    return series;
}

TEST(Summarise, MeansAndSumsByHand) {
    const Summary summary = summarise(two_layers(), 100);
    EXPECT_DOUBLE_EQ(summary.mean_r, 50.0);
    EXPECT_DOUBLE_EQ(summary.mean_r_share, 0.5);
    EXPECT_DOUBLE_EQ(summary.mean_jaccard, 0.8) << "the first layer has none";
    EXPECT_DOUBLE_EQ(summary.mean_jaccard_independent, 0.75);
    EXPECT_DOUBLE_EQ(summary.mean_turnover, 0.5);
    EXPECT_DOUBLE_EQ(summary.mean_growth, 1.25);
    EXPECT_DOUBLE_EQ(summary.missed, 3.0);
    EXPECT_DOUBLE_EQ(summary.uncovered, 4.0);
    EXPECT_DOUBLE_EQ(summary.gram_entries, 14000.0);
    EXPECT_DOUBLE_EQ(summary.gram_savings, 0.3); // of 2 * 100^2
    EXPECT_DOUBLE_EQ(summary.multiply_adds, 14.0);
    EXPECT_DOUBLE_EQ(summary.seconds, 1.0);
    EXPECT_DOUBLE_EQ(summary.mean_copy_error, 0.25);
}

TEST(Summarise, NothingMeasuredIsNothingSaid) {
    Series series = two_layers();
    for (Figures & layer : series.layers) {
        layer[Figure::gram_entries] = not_measured;
        layer[Figure::copy_error] = not_measured;
    }
    const Summary summary = summarise(series, 100);
    EXPECT_TRUE(std::isnan(summary.gram_entries));
    EXPECT_TRUE(std::isnan(summary.gram_savings));
    EXPECT_TRUE(std::isnan(summary.mean_copy_error));
    EXPECT_TRUE(std::isnan(summarise(Series(), 100).mean_r));
}

} // namespace
} // namespace cascade::analysis
