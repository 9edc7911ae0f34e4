// Ratios of paired times: by hand, and how often their intervals hold the truth.
#include "analysis/paired.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace cascade::analysis {
namespace {

using Times = std::vector<double>;

TEST(PairedRatio, ByHand) {
    const PairedRatio three = paired_ratio(Times{ 2.0, 8.0, 4.0 }, Times{ 1.0, 1.0, 1.0 }, 0.99);
    EXPECT_NEAR(three.ratio, 4.0, 1e-12) << "means of pairs in powers of two: 1 1.5 2 2 2.5 3";
    EXPECT_NEAR(three.low, 2.0, 1e-12);
    EXPECT_NEAR(three.high, 8.0, 1e-12);
    EXPECT_DOUBLE_EQ(three.level, 0.75) << "three rounds can't be surer: 1 - 2 / 2^3";
    EXPECT_EQ(three.rounds, 3U);
}

// Published two-sided critical values of the signed rank test: reject where the smaller rank sum is at most c.
TEST(PairedRatio, CutsAsInPublishedTables) {
    struct Row {
        size_t rounds;
        double level;
        size_t critical;
    };
    for (const Row & row : { Row{ 8, 0.95, 3 }, Row{ 8, 0.99, 0 }, Row{ 12, 0.95, 13 }, Row{ 12, 0.99, 7 },
                             Row{ 20, 0.95, 52 }, Row{ 20, 0.99, 37 }, Row{ 30, 0.99, 109 } }) {
        // Powers of two that are far apart: each mean of two is its own, so the ends tell the place of the cut.
        Times base;
        for (size_t i = 0; i < row.rounds; i++) {
            base.push_back(std::exp(static_cast<double>(i) * static_cast<double>(i) * 1e-3));
        }
        const Times other(row.rounds, 1.0);
        std::vector<double> means;
        for (size_t i = 0; i < row.rounds; i++) {
            for (size_t k = i; k < row.rounds; k++) {
                means.push_back(std::sqrt(base[i] * base[k]));
            }
        }
        std::sort(means.begin(), means.end());
        const PairedRatio result = paired_ratio(base, other, row.level);
        EXPECT_NEAR(result.low, means[row.critical], 1e-9) << row.rounds << " " << row.level;
        EXPECT_NEAR(result.high, means[means.size() - 1 - row.critical], 1e-9) << row.rounds << " " << row.level;
        EXPECT_GE(result.level, row.level - 1e-12);
    }
}

TEST(PairedRatio, FewRounds) {
    EXPECT_TRUE(std::isnan(paired_ratio({}, {}, 0.99).ratio));
    const PairedRatio one = paired_ratio(Times{ 3.0 }, Times{ 2.0 }, 0.99);
    EXPECT_DOUBLE_EQ(one.ratio, 1.5);
    EXPECT_TRUE(std::isnan(one.low));
    EXPECT_EQ(one.level, 0.0);
    const PairedRatio two = paired_ratio(Times{ 1.0, 2.0 }, Times{ 1.0, 1.0 }, 0.99);
    EXPECT_DOUBLE_EQ(two.low, 1.0);
    EXPECT_DOUBLE_EQ(two.high, 2.0);
    EXPECT_DOUBLE_EQ(two.level, 0.5);
    const Times same(12, 0.5);
    const PairedRatio equal = paired_ratio(same, same, 0.99);
    EXPECT_DOUBLE_EQ(equal.low, 1.0);
    EXPECT_DOUBLE_EQ(equal.high, 1.0);
    EXPECT_EQ(paired_ratio(same, Times{ 1.0, 1.0 }, 0.99).rounds, 2U) << "an unfinished round is left out";
}

// A shared machine: a drift that all see, small noise, and now and then a turn that other work makes twice as long.
struct Machine {
    std::mt19937 random;
    double drift = 0.0;

    double turn(double seconds) {
        std::normal_distribution<double> noise(0.0, 0.02);
        std::uniform_real_distribution<double> luck(0.0, 1.0);
        return seconds * std::exp(drift + noise(random)) * (luck(random) < 0.15 ? 1.0 + luck(random) : 1.0);
    }

    void pass_time() { drift += std::normal_distribution<double>(0.0, 0.05)(random); }
};

double share_of_intervals_that_hold(double true_ratio, int rounds, double level) {
    Machine machine;
    machine.random.seed(7);
    int held = 0;
    constexpr int runs = 2000;
    for (int run = 0; run < runs; run++) {
        Times bare;
        Times ours;
        for (int round = 0; round < rounds; round++) {
            machine.pass_time();
            bare.push_back(machine.turn(1.0));
            ours.push_back(machine.turn(1.0 / true_ratio));
        }
        const PairedRatio result = paired_ratio(bare, ours, level);
        held += result.low <= true_ratio && true_ratio <= result.high ? 1 : 0;
    }
    return static_cast<double>(held) / runs;
}

TEST(PairedRatio, IntervalsHoldTheTruthAsOftenAsTheySay) {
    for (const double ratio : { 1.0, 1.3 }) {
        EXPECT_NEAR(share_of_intervals_that_hold(ratio, 12, 0.99), 0.9907, 0.006) << ratio; // table: 2 * 19 / 4096
        EXPECT_NEAR(share_of_intervals_that_hold(ratio, 20, 0.95), 0.951, 0.012) << ratio;
        EXPECT_GE(share_of_intervals_that_hold(ratio, 24, 0.999), 0.997) << ratio;
    }
}

TEST(MedianOf, OddAndEven) {
    EXPECT_EQ(median_of(Times{ 3.0, 1.0, 2.0 }), 2.0);
    EXPECT_EQ(median_of(Times{ 4.0, 1.0, 2.0, 3.0 }), 2.5);
    EXPECT_TRUE(std::isnan(median_of({})));
}

} // namespace
} // namespace cascade::analysis
