// Compressed keys: what is kept, how far the rest is off, and what it takes.
#include "attend/compressed_keys.h"

#include "support/made_block.h"

#include <cmath>
#include <gtest/gtest.h>

namespace cascade::attend {
namespace {

using test::pick;
using Floats = std::vector<float>;

struct Keys {
    int64_t count;
    int64_t size;
    Floats values;
};

Keys random_keys(std::mt19937_64 & random, int64_t most = 60) {
    Keys keys = { pick(random, 1, most), pick(random, 1, most), {} };
    keys.values = test::normal_floats(random, keys.count * keys.size);
    const Floats mean = test::normal_floats(random, keys.size, 3.0F);
    for (size_t i = 0; i < keys.values.size(); i++) {
        keys.values[i] += mean[i % mean.size()];
    }
    return keys;
}

std::vector<double> mean_of(const Keys & keys) {
    std::vector<double> mean(static_cast<size_t>(keys.size), 0.0);
    for (size_t i = 0; i < keys.values.size(); i++) {
        mean[i % mean.size()] += static_cast<double>(keys.values[i]) / static_cast<double>(keys.count);
    }
    return mean;
}

Floats compressed(const Keys & keys, const Compression & compression) {
    return compressed_keys(keys.values.data(), keys.count, keys.size, compression);
}

TEST(CompressedKeys, SixteenBitsAreTheKeysThemselves) {
    std::mt19937_64 random(1);
    for (int round = 0; round < 20; round++) {
        const Keys keys = random_keys(random);
        EXPECT_EQ(compressed(keys, { 16, 0 }), keys.values);
        EXPECT_EQ(compressed(keys, { 16, keys.size }), keys.values) << "all coordinates";
        EXPECT_EQ(compressed(keys, { 16, keys.size + 5 }), keys.values) << "more than there are";
    }
}

// From the mean a value is moved by at most half a step, of which the row's largest is a whole number.
TEST(CompressedKeys, AreRoundedToTheNearestStepAroundTheMean) {
    std::mt19937_64 random(2);
    for (int round = 0; round < 100; round++) {
        const Keys keys = random_keys(random);
        const auto bits = static_cast<int>(pick(random, 2, 15));
        SCOPED_TRACE(testing::Message() << keys.count << "x" << keys.size << " bits " << bits);
        const Floats rough = compressed(keys, { bits, 0 });
        const std::vector<double> mean = mean_of(keys);
        for (int64_t row = 0; row < keys.count; row++) {
            const auto first = static_cast<size_t>(row * keys.size);
            double largest = 0.0;
            for (size_t i = 0; i < mean.size(); i++) {
                largest = std::max(largest, std::fabs(keys.values[first + i] - mean[i]));
            }
            const double step = largest / (std::pow(2.0, bits - 1) - 1.0);
            for (size_t i = 0; i < mean.size(); i++) {
                ASSERT_LE(std::fabs(static_cast<double>(rough[first + i]) - keys.values[first + i]),
                          (0.5 * step) + 1e-5);
                const double steps = (rough[first + i] - mean[i]) / std::max(step, 1e-30);
                ASSERT_TRUE(step < 1e-5 || std::fabs(steps - std::round(steps)) * step < 1e-5) << steps;
            }
        }
    }
}

TEST(CompressedKeys, EqualKeysStayAsTheyAre) {
    for (const int bits : { 2, 4, 16 }) {
        for (const int64_t coordinates : { 0, 1, 3 }) {
            Keys keys = { 7, 5, {} };
            for (int row = 0; row < 7; row++) {
                keys.values.insert(keys.values.end(), { 1.5F, -2.0F, 0.0F, 4.0F, 0.25F });
            }
            const Floats rough = compressed(keys, { bits, coordinates });
            for (size_t i = 0; i < rough.size(); i++) {
                EXPECT_NEAR(rough[i], keys.values[i], 1e-5);
            }
        }
    }
    EXPECT_TRUE(compressed_keys(nullptr, 0, 8, { 4, 0 }).empty());
    EXPECT_TRUE(compressed_keys(nullptr, 0, 8, { 4, 3 }).empty());
}

Keys low_rank_keys(std::mt19937_64 & random, int64_t rank) {
    Keys keys = { 50, 24, {} };
    const Floats basis = test::normal_floats(random, rank * keys.size);
    const Floats mean = test::normal_floats(random, keys.size, 5.0F);
    for (int64_t row = 0; row < keys.count; row++) {
        const Floats weights = test::normal_floats(random, rank);
        for (int64_t i = 0; i < keys.size; i++) {
            float value = mean[static_cast<size_t>(i)];
            for (int64_t k = 0; k < rank; k++) {
                value += weights[static_cast<size_t>(k)] * basis[static_cast<size_t>((k * keys.size) + i)];
            }
            keys.values.push_back(value);
        }
    }
    return keys;
}

double squared_error(const Floats & a, const Floats & b) {
    double sum = 0.0;
    for (size_t i = 0; i < a.size(); i++) {
        sum += std::pow(static_cast<double>(a[i]) - b[i], 2);
    }
    return sum;
}

TEST(CompressedKeys, LeadingCoordinatesRecoverKeysOfLowRank) {
    std::mt19937_64 random(3);
    for (const int64_t rank : { 1, 2, 5, 11 }) {
        const Keys keys = low_rank_keys(random, rank);
        const Floats whole = compressed(keys, { 16, rank });
        for (size_t i = 0; i < whole.size(); i++) {
            ASSERT_NEAR(whole[i], keys.values[i], 1e-4) << "rank " << rank;
        }
        if (rank > 1) {
            EXPECT_GT(squared_error(compressed(keys, { 16, rank - 1 }), keys.values), 1.0) << "one is missing";
        }
    }
}

// The keys' own basis: no other choice of so many directions loses less, so each further one helps, and even the best
// coordinates of the basis they come in lose more.
TEST(CompressedKeys, LeadingCoordinatesAreTheBestOnes) {
    std::mt19937_64 random(4);
    for (int round = 0; round < 20; round++) {
        Keys keys = random_keys(random, 30);
        const std::vector<double> mean = mean_of(keys);
        std::vector<double> spread(mean.size(), 0.0);
        for (size_t i = 0; i < keys.values.size(); i++) {
            spread[i % mean.size()] += std::pow(keys.values[i] - mean[i % mean.size()], 2);
        }
        std::sort(spread.begin(), spread.end());
        double before = 1e30;
        double unrotated = 0.0;
        for (int64_t dropped = 1; dropped < keys.size; dropped++) {
            unrotated += spread[static_cast<size_t>(dropped - 1)];
            const double lost = squared_error(compressed(keys, { 16, keys.size - dropped }), keys.values);
            EXPECT_LE(lost, unrotated + 1e-3);
        }
        for (int64_t kept = 1; kept < keys.size; kept++) {
            const double lost = squared_error(compressed(keys, { 16, kept }), keys.values);
            EXPECT_LE(lost, before + 1e-3);
            before = lost;
        }
    }
}

// The rotation keeps lengths: what rounding adds in it is at most half a step for each coordinate.
TEST(CompressedKeys, RoundingInTheirOwnBasisIsBoundedToo) {
    std::mt19937_64 random(5);
    for (int round = 0; round < 40; round++) {
        const Keys keys = random_keys(random, 30);
        const int64_t kept = pick(random, 1, keys.size);
        const auto bits = static_cast<int>(pick(random, 2, 8));
        const Floats whole = compressed(keys, { 16, kept });
        const Floats rough = compressed(keys, { bits, kept });
        const std::vector<double> mean = mean_of(keys);
        for (int64_t row = 0; row < keys.count; row++) {
            double length = 0.0;
            double moved = 0.0;
            for (int64_t i = 0; i < keys.size; i++) {
                const auto at = static_cast<size_t>((row * keys.size) + i);
                length += std::pow(whole[at] - mean[static_cast<size_t>(i)], 2);
                moved += std::pow(static_cast<double>(whole[at]) - rough[at], 2);
            }
            const double step = std::sqrt(length) / (std::pow(2.0, bits - 1) - 1.0); // or less
            ASSERT_LE(std::sqrt(moved), (0.5 * step * std::sqrt(static_cast<double>(keys.size))) + 1e-4);
        }
    }
}

TEST(CompressedKeys, TakeTheirBitsAndAScale) {
    EXPECT_EQ((Compression{ 4, 0 }.bits_for_key(64)), (64 * 4) + 16);
    EXPECT_EQ((Compression{ 2, 0 }.bits_for_key(1)), 18);
    EXPECT_EQ((Compression{ 3, 10 }.bits_for_key(64)), 30 + 16);
    EXPECT_EQ((Compression{ 3, 100 }.bits_for_key(64)), (64 * 3) + 16);
    EXPECT_EQ((Compression{ 16, 0 }.bits_for_key(64)), 64 * 16);
    EXPECT_EQ((Compression{ 16, 8 }.bits_for_key(64)), 8 * 16);
}

} // namespace
} // namespace cascade::attend
