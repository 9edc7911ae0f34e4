// Summaries beside figures worked out by hand, and intervals beside a truth that is known because it was made up.
#include "evaluate/summary.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <set>
#include <stdexcept>
#include <tuple>

namespace cascade::evaluate {
namespace {

// A window whose tokens all have the dense likelihood 1/e, with methods of these KLs.
Window made_window(const std::vector<std::pair<std::string, std::vector<float>>> & methods) {
    Window window;
    window.dense_seconds = 2.0;
    for (const auto & [label, kl] : methods) {
        window.dense_nll.assign(kl.size(), 1.0F);
        MethodWindow method;
        method.label = label;
        method.scores = { kl, std::vector<uint8_t>(kl.size(), 1), std::vector<float>(kl.size(), 1.0F) };
        method.seconds = 3.0;
        window.methods.push_back(std::move(method));
    }
    return window;
}

Reads reads(double share, double bytes) { return { 100.0, 100.0 * share, 100.0 * bytes, 100.0 }; }

TEST(Summary, AgreesWithFiguresWorkedOutByHand) {
    Evaluation evaluation{ { "a:0.2", "b:0.2" },
                           { made_window({ { "a:0.2", { 0, 1, 2, 5 } }, { "b:0.2", { 1, 1, 1, 1 } } }) },
                           {} };
    Window & window = evaluation.windows[0];
    window.dense_nll = { 1, 2, 3, 2 };
    window.methods[0].scores.nll = { 2, 2, 3, 3 };
    window.methods[0].scores.same_top = { 1, 0, 1, 1 };
    window.methods[0].reads = { 1000, 250, 600, 2000 };
    window.methods[0].layers = { { 0, 0, true }, { 1, 4, false }, { 0, 0, false } };

    const Summary summary = summarise(evaluation);
    EXPECT_EQ(summary.windows, 1);
    EXPECT_EQ(summary.tokens, 4);
    EXPECT_DOUBLE_EQ(summary.dense_ppl, std::exp(2.0));
    ASSERT_EQ(summary.methods.size(), 2U);
    const MethodSummary & a = summary.methods[0];
    EXPECT_EQ(a.label, "a:0.2");
    EXPECT_DOUBLE_EQ(a.kl, 2.0);
    EXPECT_DOUBLE_EQ(a.kl_median, 1.5);
    EXPECT_DOUBLE_EQ(a.kl_99, 2.0 + (0.97 * 3.0));
    EXPECT_DOUBLE_EQ(a.kl_999, 2.0 + (0.997 * 3.0));
    EXPECT_DOUBLE_EQ(a.top1, 0.75);
    EXPECT_DOUBLE_EQ(a.ppl_ratio, std::exp(0.5));
    EXPECT_DOUBLE_EQ(a.share, 0.25);
    EXPECT_DOUBLE_EQ(a.bytes_share, 0.3);
    EXPECT_DOUBLE_EQ(a.seconds, 3.0);
    EXPECT_DOUBLE_EQ(a.cost, 1.5);
    // Two blocks of two tokens with means of 0.5 and 3.5: a quarter of all draws has either one twice.
    EXPECT_DOUBLE_EQ(a.kl_interval.low, 0.5);
    EXPECT_DOUBLE_EQ(a.kl_interval.high, 3.5);
    EXPECT_DOUBLE_EQ(a.top1_interval.low, 0.5);
    EXPECT_DOUBLE_EQ(a.top1_interval.high, 1.0);
    ASSERT_EQ(a.layer_error.size(), 3U);
    EXPECT_TRUE(std::isnan(a.layer_error[0]));
    EXPECT_DOUBLE_EQ(a.layer_error[1], 0.5);
    EXPECT_TRUE(std::isnan(a.layer_error[2])) << "of an output without a norm";
    EXPECT_EQ(a.layers_left_alone, 1);
    EXPECT_TRUE(std::isnan(summary.methods[1].share)) << "nothing was in reach";
    EXPECT_TRUE(std::isnan(a.retrieval));
    EXPECT_TRUE(summary.tasks.empty());
}

TEST(Summary, LayersAreSummedOverWindowsInWhichTheyWereReplaced) {
    Evaluation evaluation{ { "a" }, { made_window({ { "a", { 0, 0 } } }), made_window({ { "a", { 0, 0 } } }) }, {} };
    evaluation.windows[0].methods[0].layers = { { 3, 5, false }, { 7, 7, true } };
    evaluation.windows[1].methods[0].layers = { { 1, 11, false }, { 1, 4, false } };
    const MethodSummary a = summarise(evaluation).methods[0];
    EXPECT_DOUBLE_EQ(a.layer_error[0], 0.5);
    EXPECT_DOUBLE_EQ(a.layer_error[1], 0.5);
    EXPECT_EQ(a.layers_left_alone, 0);
}

TEST(Summary, OfNothingIsNothing) {
    const Summary none = summarise({});
    EXPECT_EQ(none.tokens, 0);
    EXPECT_TRUE(std::isnan(none.dense_ppl));
    const Summary no_windows = summarise({ { "a" }, {}, {} });
    ASSERT_EQ(no_windows.methods.size(), 1U);
    EXPECT_TRUE(std::isnan(no_windows.methods[0].kl));
    const Summary one_token = summarise({ { "a" }, { made_window({ { "a", { 1 } } }) }, {} });
    EXPECT_DOUBLE_EQ(one_token.methods[0].kl, 1.0);
    EXPECT_TRUE(std::isnan(one_token.methods[0].kl_interval.low)) << "one block says nothing of its spread";
}

TEST(Summary, RefusesWhatDoesNotBelongTogether) {
    EXPECT_THROW(summarise({ { "b" }, { made_window({ { "a", { 1 } } }) }, {} }), std::invalid_argument);
    Evaluation shorter{ { "a" }, { made_window({ { "a", { 1, 2 } } }) }, {} };
    shorter.windows[0].methods[0].scores.nll.pop_back();
    EXPECT_THROW(summarise(shorter), std::invalid_argument);
    Answer answer;
    answer.right = { 1, 1 };
    answer.tokens_right = { 1, 1 };
    EXPECT_THROW(summarise({ { "a" }, {}, { answer } }), std::invalid_argument);
}

TEST(Summary, FindsMethodsByTheirNames) {
    const Evaluation evaluation{ { "a", "b" }, { made_window({ { "b", { 2, 2 } }, { "a", { 1, 1 } } }) }, {} };
    const Summary summary = summarise(evaluation);
    EXPECT_DOUBLE_EQ(summary.methods[0].kl, 1.0);
    EXPECT_DOUBLE_EQ(summary.methods[1].kl, 2.0);
}

TEST(Summary, FiguresThatAreNoNumbersAreCounted) {
    constexpr float infinite = std::numeric_limits<float>::infinity();
    const float nan = std::nanf("");
    const Evaluation evaluation{ { "a", "b" },
                                 { made_window({ { "a", { 1, nan, infinite, 1 } }, { "b", { 2, 2, 2, 2 } } }) },
                                 {} };
    const Summary summary = summarise(evaluation);
    EXPECT_EQ(summary.methods[0].broken, 2);
    EXPECT_TRUE(std::isnan(summary.methods[0].kl));
    EXPECT_TRUE(std::isnan(summary.methods[0].kl_interval.high));
    EXPECT_FALSE(summary.methods[0].frontier);
    EXPECT_TRUE(summary.methods[0].ahead_of.empty());
    EXPECT_EQ(summary.methods[1].broken, 0);
    EXPECT_DOUBLE_EQ(summary.methods[1].kl, 2.0);
}

TEST(Blocks, AreTwoAtLeast) {
    EXPECT_EQ(block_length(4096), 128);
    EXPECT_EQ(block_length(256), 128);
    EXPECT_EQ(block_length(255), 128);
    EXPECT_EQ(block_length(254), 127);
    EXPECT_EQ(block_length(3), 2);
    EXPECT_EQ(block_length(2), 1);
    EXPECT_EQ(block_length(1), 1);
    EXPECT_EQ(block_length(0), 1);
}

TEST(Quantile, IsLinearBetweenNeighbours) {
    const std::vector<double> values = { 1, 2, 4, 8, 16 };
    EXPECT_DOUBLE_EQ(quantile(values, 0.0), 1.0);
    EXPECT_DOUBLE_EQ(quantile(values, 0.5), 4.0);
    EXPECT_DOUBLE_EQ(quantile(values, 0.875), 12.0);
    EXPECT_DOUBLE_EQ(quantile(values, 1.0), 16.0);
    EXPECT_DOUBLE_EQ(quantile(std::vector<double>{ 7 }, 0.99), 7.0);
    EXPECT_TRUE(std::isnan(quantile({}, 0.5)));
}

TEST(Wilson, AgreesWithPublishedIntervals) {
    EXPECT_NEAR(wilson(8, 10).low, 0.4902, 1e-4);
    EXPECT_NEAR(wilson(8, 10).high, 0.9433, 1e-4);
    EXPECT_NEAR(wilson(81, 263).low, 0.2553, 1e-4);
    EXPECT_NEAR(wilson(81, 263).high, 0.3662, 1e-4);
    EXPECT_EQ(wilson(0, 6).low, 0.0);
    EXPECT_NEAR(wilson(0, 6).high, 0.3903, 1e-4);
    EXPECT_EQ(wilson(6, 6).high, 1.0);
    EXPECT_TRUE(std::isnan(wilson(0, 0).low));
}

// Tokens of a text whose hard passages are hard for all: each passage of 64 has a level of its own.
struct Text {
    explicit Text(uint32_t seed, size_t windows = 4, size_t tokens = 1024) {
        std::mt19937 generator(seed);
        std::exponential_distribution<float> level(1.0F);
        for (size_t w = 0; w < windows; w++) {
            std::vector<float> kl;
            while (kl.size() < tokens) {
                kl.insert(kl.end(), 64, level(generator));
            }
            kls.push_back(std::move(kl));
        }
    }

    std::vector<std::vector<float>> kls;
};

TEST(Bootstrap, CoversTheTruth) {
    constexpr int texts = 300;
    int covered = 0;
    for (int i = 0; i < texts; i++) {
        Evaluation evaluation{ { "a" }, {}, {} };
        for (const auto & kl : Text(static_cast<uint32_t>(i)).kls) {
            evaluation.windows.push_back(made_window({ { "a", kl } }));
        }
        const Interval interval = summarise(evaluation).methods[0].kl_interval;
        covered += interval.low <= 1.0 && 1.0 <= interval.high ? 1 : 0;
    }
    // A bootstrap of single tokens, blind to passages, would cover it in about a fifth of the texts.
    EXPECT_GE(covered, texts * 86 / 100);
    EXPECT_LE(covered, texts * 99 / 100);
}

TEST(Bootstrap, IsPaired) {
    Evaluation evaluation{ { "a", "b", "c" }, {}, {} };
    for (const auto & kl : Text(1).kls) {
        std::vector<float> slightly_worse;
        for (const float value : kl) {
            slightly_worse.push_back((1.01F * value) + 0.001F);
        }
        evaluation.windows.push_back(made_window({ { "a", kl }, { "b", slightly_worse }, { "c", kl } }));
    }
    std::swap(evaluation.windows[0].methods[2].scores.kl, evaluation.windows[1].methods[2].scores.kl);
    evaluation.windows[2].methods[2].scores.kl[5] += 0.001F;
    const Summary summary = summarise(evaluation);
    const auto & [a, b, c] = std::tie(summary.methods[0], summary.methods[1], summary.methods[2]);
    EXPECT_GT(a.kl_interval.high, b.kl_interval.low) << "their own intervals overlap";
    EXPECT_EQ(a.ahead_of, std::vector<std::string>{ "b" }) << "of the difference we are sure, but not of that to c";
    EXPECT_TRUE(b.ahead_of.empty());
    EXPECT_GT(c.kl, a.kl);
    EXPECT_EQ(summary.methods[0].ppl_ratio_interval.low, 1.0) << "as likely as by the dense model in every draw";
    EXPECT_EQ(summary.methods[0].ppl_ratio_interval.high, 1.0);
}

TEST(Bootstrap, GivesTheSameEveryTime) {
    Evaluation evaluation{ { "a" }, {}, {} };
    for (const auto & kl : Text(3).kls) {
        evaluation.windows.push_back(made_window({ { "a", kl } }));
    }
    const MethodSummary first = summarise(evaluation).methods[0];
    const MethodSummary second = summarise(evaluation).methods[0];
    EXPECT_EQ(first.kl_interval.low, second.kl_interval.low);
    EXPECT_EQ(first.kl_interval.high, second.kl_interval.high);
    evaluation.labels.insert(evaluation.labels.begin(), "other");
    for (Window & window : evaluation.windows) {
        window.methods.push_back(window.methods[0]);
        window.methods.back().label = "other";
    }
    EXPECT_EQ(summarise(evaluation).methods[1].kl_interval.low, first.kl_interval.low) << "whatever else is measured";
}

// Pinned: other draws on another machine would be seen here. Sums of small integers are exact everywhere.
TEST(Bootstrap, GivesTheSameEverywhere) {
    std::vector<float> kl(1000);
    for (size_t i = 0; i < kl.size(); i++) {
        kl[i] = static_cast<float>((i * i / 64) % 11);
    }
    const Interval interval = summarise({ { "a" }, { made_window({ { "a", kl } }) }, {} }).methods[0].kl_interval;
    EXPECT_NEAR(interval.low, 4.3818115234375004, 1e-12);
    EXPECT_NEAR(interval.high, 4.8022540983606561, 1e-12);
}

TEST(Frontier, IsWhatNoOtherBeats) {
    Window window = made_window({ { "few", { 9, 9 } },
                                  { "good", { 1, 1 } },
                                  { "beaten", { 2, 2 } },
                                  { "equal", { 1, 1 } },
                                  { "same share", { 3, 3 } },
                                  { "fa-off", { 0, 0 } } });
    const std::vector<Reads> all = { reads(0.1, 0.9), reads(0.2, 0.2), reads(0.3, 0.1),
                                     reads(0.2, 0.2), reads(0.2, 0.3), {} };
    Evaluation evaluation;
    for (size_t i = 0; i < all.size(); i++) {
        window.methods[i].reads = all[i];
        evaluation.labels.push_back(window.methods[i].label);
    }
    evaluation.windows.push_back(window);
    std::set<std::string> by_share;
    std::set<std::string> by_bytes;
    for (const MethodSummary & method : summarise(evaluation).methods) {
        if (method.frontier) {
            by_share.insert(method.label);
        }
        if (method.frontier_bytes) {
            by_bytes.insert(method.label);
        }
    }
    EXPECT_EQ(by_share, (std::set<std::string>{ "few", "good", "equal" }));
    EXPECT_EQ(by_bytes, (std::set<std::string>{ "beaten", "good", "equal" }));
}

Answer made_answer(const std::string & task, int64_t length, double depth, bool dense, std::vector<uint8_t> right) {
    Answer answer{ task, length, depth, 0, 4, dense, dense ? 4 : 1, std::move(right), {} };
    for (const uint8_t one : answer.right) {
        answer.tokens_right.push_back(one != 0 ? 4 : 2);
    }
    return answer;
}

TEST(Retrieval, JudgesByTasksInReachOnly) {
    Evaluation evaluation{ { "a", "b" }, {}, {} };
    for (int i = 0; i < 5; i++) { // the dense model: 4 of 5, and in twice the length 3 of 5
        evaluation.answers.push_back(made_answer("passkey", 1024, 0.25 * i, i != 0, { i != 1, 0 }));
        evaluation.answers.push_back(made_answer("passkey", 2048, 0.25 * i, i > 1, { 1, 1 }));
    }
    const Summary summary = summarise(evaluation);
    ASSERT_EQ(summary.tasks.size(), 2U);
    EXPECT_EQ(summary.tasks[0].task, "passkey");
    EXPECT_EQ(summary.tasks[0].length, 1024);
    EXPECT_EQ(summary.tasks[0].questions, 5);
    EXPECT_DOUBLE_EQ(summary.tasks[0].dense, 0.8);
    EXPECT_FALSE(summary.tasks[0].out_of_reach);
    EXPECT_EQ(summary.tasks[0].methods, (std::vector<double>{ 0.8, 0.0 }));
    EXPECT_TRUE(summary.tasks[1].out_of_reach);
    EXPECT_EQ(summary.tasks[1].methods, (std::vector<double>{ 1.0, 1.0 }));
    const MethodSummary & a = summary.methods[0];
    EXPECT_DOUBLE_EQ(a.retrieval, 0.8);
    EXPECT_DOUBLE_EQ(a.retrieval_dense, 0.8);
    EXPECT_DOUBLE_EQ(a.retrieval_tokens, 18.0 / 20.0);
    EXPECT_DOUBLE_EQ(a.retrieval_tokens_dense, 17.0 / 20.0);
    EXPECT_DOUBLE_EQ(a.retrieval_interval.low, wilson(4, 5).low);
    EXPECT_DOUBLE_EQ(summary.methods[1].retrieval, 0.0);
    ASSERT_EQ(summary.depths.size(), 5U) << "0, 0.25, 0.5, 0.75 and 1, each in a fifth of its own";
    EXPECT_DOUBLE_EQ(summary.depths[0].dense, 0.0);
    EXPECT_DOUBLE_EQ(summary.depths[1].from, 0.2);
    EXPECT_EQ(summary.depths[1].methods, (std::vector<double>{ 0.0, 0.0 }));
    EXPECT_EQ(summary.depths[4].questions, 1);
}

TEST(Retrieval, WithoutATaskInReachIsNotMeasured) {
    const Evaluation evaluation{ { "a" }, {}, { made_answer("passkey", 1024, 0.5, false, { 1 }) } };
    const Summary summary = summarise(evaluation);
    EXPECT_TRUE(summary.tasks[0].out_of_reach);
    EXPECT_TRUE(std::isnan(summary.methods[0].retrieval));
    EXPECT_TRUE(std::isnan(summary.methods[0].retrieval_interval.low));
    EXPECT_TRUE(summary.depths.empty());
}

} // namespace
} // namespace cascade::evaluate
