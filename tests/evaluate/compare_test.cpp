// Predictions compared, against the definitions in naive loops and double.
#include "evaluate/compare.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

namespace cascade::evaluate {
namespace {

using Logits = std::vector<std::vector<float>>; // by token

Logits random_logits(std::mt19937_64 & random, size_t tokens, size_t vocabulary, float spread) {
    std::normal_distribution<float> normal(0.0F, spread);
    Logits logits(tokens, std::vector<float>(vocabulary));
    for (auto & row : logits) {
        std::generate(row.begin(), row.end(), [&] { return normal(random); });
    }
    return logits;
}

Logits nudged(const Logits & logits, std::mt19937_64 & random, float by) {
    std::normal_distribution<float> normal(0.0F, by);
    Logits result = logits;
    for (auto & row : result) {
        for (float & value : row) {
            value += normal(random);
        }
    }
    return result;
}

std::vector<int32_t> random_next(std::mt19937_64 & random, size_t tokens, size_t vocabulary) {
    std::vector<int32_t> next(tokens);
    std::generate(next.begin(), next.end(), [&] { return static_cast<int32_t>(random() % vocabulary); });
    return next;
}

std::vector<const float *> pointers(const Logits & logits) {
    std::vector<const float *> rows;
    for (const auto & row : logits) {
        rows.push_back(row.data());
    }
    return rows;
}

std::vector<double> log_probabilities(const std::vector<float> & logits) {
    const double largest = *std::max_element(logits.begin(), logits.end());
    double sum = 0.0;
    for (const float logit : logits) {
        sum += std::exp(logit - largest);
    }
    std::vector<double> result;
    for (const float logit : logits) {
        result.push_back(logit - largest - std::log(sum));
    }
    return result;
}

double naive_kl(const std::vector<float> & dense, const std::vector<float> & other) {
    const auto p = log_probabilities(dense);
    const auto q = log_probabilities(other);
    double kl = 0.0;
    for (size_t i = 0; i < p.size(); i++) {
        kl += p[i] > -700.0 ? std::exp(p[i]) * (p[i] - q[i]) : 0.0;
    }
    return kl;
}

size_t top_of(const std::vector<float> & logits) {
    return static_cast<size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

// Everything that a comparison says of these tokens, against the definitions.
void expect_definitions(const Logits & dense, const Logits & other, const std::vector<int32_t> & next, double tolerance,
                        Team & team) {
    Comparison comparison(static_cast<int64_t>(dense.front().size()), team);
    std::vector<float> dense_nll;
    Scores scores;
    comparison.set_dense(pointers(dense), next, dense_nll);
    comparison.compare(pointers(other), scores);
    ASSERT_EQ(dense_nll.size(), dense.size());
    ASSERT_EQ(scores.kl.size(), dense.size());
    for (size_t i = 0; i < dense.size(); i++) {
        const auto following = static_cast<size_t>(next[i]);
        const double kl = naive_kl(dense[i], other[i]);
        const double nll = -log_probabilities(other[i])[following];
        const double own_nll = -log_probabilities(dense[i])[following];
        ASSERT_NEAR(scores.kl[i], kl, tolerance * (1.0 + kl)) << "token " << i;
        ASSERT_GE(scores.kl[i], 0.0F);
        ASSERT_NEAR(scores.nll[i], nll, 1e-6 * (10.0 + nll));
        ASSERT_NEAR(dense_nll[i], own_nll, 1e-6 * (10.0 + own_nll));
        ASSERT_EQ(scores.same_top[i], top_of(dense[i]) == top_of(other[i]) ? 1 : 0);
        ASSERT_EQ(comparison.right()[i], top_of(other[i]) == following ? 1 : 0);
        ASSERT_EQ(comparison.dense_right()[i], top_of(dense[i]) == following ? 1 : 0);
    }
}

TEST(Comparison, IsByTheDefinitions) {
    std::mt19937_64 random(1);
    Team one(1);
    Team three(3);
    for (int round = 0; round < 120; round++) {
        const size_t tokens = 1 + (random() % 12);
        const size_t vocabulary = 1 + (random() % 300);
        const auto spread = static_cast<float>(1 + (random() % 12));
        const Logits dense = random_logits(random, tokens, vocabulary, spread);
        const Logits other = round % 3 == 0 ? random_logits(random, tokens, vocabulary, spread)
                                            : nudged(dense, random, 0.01F * static_cast<float>(round));
        SCOPED_TRACE(testing::Message() << "round " << round << " vocabulary " << vocabulary);
        ASSERT_NO_FATAL_FAILURE(expect_definitions(dense, other, random_next(random, tokens, vocabulary), 1e-5,
                                                   round % 2 == 0 ? one : three));
    }
}

TEST(Comparison, LargeVocabulariesThatFillNoWholeVectors) {
    std::mt19937_64 random(2);
    Team team(2);
    for (const size_t vocabulary : { 49152UL, 50257UL, 151936UL, 128001UL }) {
        const Logits dense = random_logits(random, 3, vocabulary, 3.0F);
        SCOPED_TRACE(vocabulary);
        expect_definitions(dense, nudged(dense, random, 0.3F), random_next(random, 3, vocabulary), 1e-5, team);
    }
}

TEST(Comparison, EqualLogitsAreNoDistanceAtAll) {
    std::mt19937_64 random(3);
    Team team(2);
    for (const float spread : { 0.0F, 0.1F, 5.0F, 1000.0F }) {
        const Logits dense = random_logits(random, 9, 1003, spread);
        const auto next = random_next(random, 9, 1003);
        Comparison comparison(1003, team);
        std::vector<float> dense_nll;
        Scores scores;
        comparison.set_dense(pointers(dense), next, dense_nll);
        comparison.compare(pointers(dense), scores);
        EXPECT_EQ(scores.kl, std::vector<float>(9, 0.0F));
        EXPECT_EQ(scores.same_top, std::vector<uint8_t>(9, 1));
        EXPECT_EQ(scores.nll, dense_nll);
        EXPECT_EQ(comparison.right(), comparison.dense_right());
    }
}

TEST(Comparison, ExtremeLogits) {
    Team team(1);
    const std::vector<float> sure = { 0.0F, 3e4F, -3e4F, 12.0F, -1e30F };
    const std::vector<float> flat = { 0.0F, 0.0F, 0.0F, 0.0F, 0.0F };
    const std::vector<float> shifted = { -50.0F, 29950.0F, -30050.0F, -38.0F, -1e30F };
    expect_definitions({ flat }, { sure }, { 2 }, 1e-5, team);
    expect_definitions({ sure, sure, flat }, { flat, shifted, flat }, { 1, 0, 4 }, 1e-5, team);
}

// A shift of all logits changes no prediction.
TEST(Comparison, ShiftsDoNotCount) {
    std::mt19937_64 random(4);
    Team team(1);
    const Logits dense = random_logits(random, 5, 777, 4.0F);
    Logits other = dense;
    for (auto & row : other) {
        for (float & value : row) {
            value += 3.0F;
        }
    }
    Comparison comparison(777, team);
    std::vector<float> dense_nll;
    Scores scores;
    comparison.set_dense(pointers(dense), random_next(random, 5, 777), dense_nll);
    comparison.compare(pointers(other), scores);
    for (const float kl : scores.kl) {
        EXPECT_LT(kl, 1e-5F);
    }
    EXPECT_EQ(scores.same_top, std::vector<uint8_t>(5, 1));
}

// The result would otherwise be the best there is.
TEST(Comparison, WhatIsNoNumberIsNoGoodPrediction) {
    Team team(1);
    const Logits dense = { { 1.0F, 2.0F, 3.0F } };
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (const auto & broken : { Logits{ { nan, nan, nan } }, Logits{ { 1.0F, nan, 3.0F } } }) {
        Comparison comparison(3, team);
        std::vector<float> dense_nll;
        Scores scores;
        comparison.set_dense(pointers(dense), std::vector<int32_t>{ 2 }, dense_nll);
        comparison.compare(pointers(broken), scores);
        EXPECT_FALSE(scores.kl.front() < 1e-3F) << scores.kl.front();
        EXPECT_FALSE(scores.nll.front() < 1e-3F) << scores.nll.front();
    }
}

TEST(Comparison, CallsAddToWhatIsThereInOrder) {
    std::mt19937_64 random(5);
    Team team(3);
    const Logits dense = random_logits(random, 11, 50, 2.0F);
    const Logits other = random_logits(random, 11, 50, 2.0F);
    const auto next = random_next(random, 11, 50);
    Comparison whole(50, team);
    std::vector<float> nll_whole;
    Scores scores_whole;
    whole.set_dense(pointers(dense), next, nll_whole);
    whole.compare(pointers(other), scores_whole);
    Comparison parts(50, team);
    std::vector<float> nll_parts;
    Scores scores_parts;
    size_t from = 0;
    for (const size_t end : { 7UL, 7UL, 8UL, 11UL }) { // fewer than before, and none, among them
        const auto rows = [&](const Logits & logits) {
            const auto all = pointers(logits);
            return std::vector<const float *>(all.begin() + static_cast<std::ptrdiff_t>(from),
                                              all.begin() + static_cast<std::ptrdiff_t>(end));
        };
        parts.set_dense(rows(dense), std::span(next).subspan(from, end - from), nll_parts);
        parts.compare(rows(other), scores_parts);
        EXPECT_EQ(parts.right().size(), end - from);
        EXPECT_EQ(parts.dense_right().size(), end - from);
        from = end;
    }
    EXPECT_EQ(nll_whole, nll_parts);
    EXPECT_EQ(scores_whole.kl, scores_parts.kl);
    EXPECT_EQ(scores_whole.nll, scores_parts.nll);
    EXPECT_EQ(scores_whole.same_top, scores_parts.same_top);
    parts.compare(pointers({ dense.begin() + 8, dense.end() }), scores_parts);
    EXPECT_EQ(scores_parts.kl.size(), 14U) << "a second method on the same tokens";
    EXPECT_EQ(scores_parts.kl.back(), 0.0F);
}

} // namespace
} // namespace cascade::evaluate
