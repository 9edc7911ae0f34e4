#include "evaluate/tuning.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>

namespace cascade::evaluate {
namespace {

TEST(RelativeEpsilons, AreOneForLayersThatCostTheSame) {
    const std::vector<LayerCost> layers(5, { 1e-4, 100.0 });
    for (const double relative : relative_epsilons(layers)) {
        EXPECT_NEAR(relative, 1.0, 1e-12);
    }
}

// No other epsilons of the same sum of KLs read less, in the model that the header states.
TEST(RelativeEpsilons, ReadTheLeastForTheirKl) {
    const std::vector<LayerCost> layers = { { 1e-4, 100.0 }, { 3e-4, 50.0 }, { 2e-5, 80.0 }, { 1e-4, 20.0 } };
    const auto kl = [&](const std::vector<double> & epsilons) {
        double sum = 0.0;
        for (size_t i = 0; i < layers.size(); i++) {
            sum += layers[i].kl * epsilons[i] * epsilons[i];
        }
        return sum;
    };
    const auto read = [&](const std::vector<double> & epsilons) {
        double sum = 0.0;
        for (size_t i = 0; i < layers.size(); i++) {
            sum += layers[i].read / epsilons[i];
        }
        return sum;
    };
    const std::vector<double> best = relative_epsilons(layers);
    for (size_t i = 0; i < layers.size(); i++) {
        for (const double change : { 0.9, 1.1 }) {
            std::vector<double> other = best;
            other[i] *= change;
            const double scale = std::sqrt(kl(best) / kl(other));
            for (double & epsilon : other) {
                epsilon *= scale;
            }
            EXPECT_NEAR(kl(other), kl(best), 1e-12);
            EXPECT_GT(read(other), read(best)) << "layer " << i;
        }
    }
}

TEST(RelativeEpsilons, TrustNoLayerTooFarAndLeaveOutThoseNotApproximated) {
    const std::vector<LayerCost> layers = {
        { 0.0, 100.0 }, { 1.0, 1.0 }, { 1e-3, 100.0 }, { 0.5, 0.0 }, { 1e-3, 100.0 }
    };
    const std::vector<double> relative = relative_epsilons(layers);
    EXPECT_EQ(relative[3], 1.0);
    for (const double one : relative) {
        EXPECT_GE(one, 1.0 / widest);
        EXPECT_LE(one, widest);
    }
    EXPECT_LT(relative[1], relative[0]);
    const std::vector<LayerCost> nothing(3);
    EXPECT_EQ(relative_epsilons(nothing), std::vector<double>(3, 1.0));
    EXPECT_TRUE(relative_epsilons({}).empty());
}

TEST(Excess, IsOfTheWorseOfBoth) {
    const Budget budget = { 0.0055, 0.97 };
    EXPECT_LE(excess(budget, 0.0055, 0.97), 1e-12);
    EXPECT_LT(excess(budget, 0.004, 0.98), 0.0);
    EXPECT_GT(excess(budget, 0.006, 0.98), 0.0);
    EXPECT_GT(excess(budget, 0.004, 0.96), 0.0);
    EXPECT_LT(excess(budget, 0.0, 1.0), 0.0);
    EXPECT_GT(excess(budget, std::numeric_limits<double>::quiet_NaN(), 1.0), 0.0);
    EXPECT_GT(excess(budget, 0.001, std::numeric_limits<double>::quiet_NaN()), 0.0);
}

struct Found {
    std::optional<double> best;
    int measurements = 0;
};

Found search(double start, double highest, double (*excess_of)(double)) {
    FactorSearch search(start, highest);
    Found found;
    while (const auto factor = search.next()) {
        EXPECT_GT(*factor, 0.0);
        EXPECT_LE(*factor, highest);
        search.tell(*factor, excess_of(*factor));
        found.measurements++;
    }
    found.best = search.best();
    return found;
}

TEST(FactorSearch, FindsAlmostTheLargestThatHoldsInAFewSteps) {
    for (const double start : { 0.005, 0.02, 0.05, 0.2, 0.8 }) {
        for (const auto & excess_of :
             { +[](double f) { return 2.0 * std::log(f / 0.05); }, +[](double f) { return std::log(f / 0.05); },
               +[](double f) { return (f > 0.05 ? 3.0 : 0.7) * std::log(f / 0.05); } }) {
            const Found found = search(start, 1.0, excess_of);
            ASSERT_TRUE(found.best) << start;
            EXPECT_LE(*found.best, 0.05);
            EXPECT_GE(*found.best, 0.044) << start;
            EXPECT_LE(found.measurements, 7);
        }
    }
}

TEST(FactorSearch, StopsAtTheHighest) {
    const Found found = search(0.1, 0.5, [](double) { return -3.0; });
    EXPECT_EQ(found.best, 0.5);
    EXPECT_LE(found.measurements, 4);
}

TEST(FactorSearch, FindsNothingWhereNothingHolds) {
    const Found found = search(0.1, 1.0, [](double) { return 2.0; });
    EXPECT_FALSE(found.best);
    EXPECT_LE(found.measurements, 7);
}

} // namespace
} // namespace cascade::evaluate
