// Attention on a selection against the oracle, and shares of attention against their definition, over random shapes on
// every instruction set.
#include "attend/exponentials.h"
#include "attend/method.h"
#include "attend/plain_shares.h"
#include "cascade/attention.h"
#include "support/made_block.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <hwy/targets.h>
#include <limits>

namespace cascade {
namespace {

using test::BlockShape;
using test::MadeBlock;
using test::pick;

constexpr float hidden = -std::numeric_limits<float>::infinity();

void copy_floats(const void * stored, float * values, int64_t n) {
    std::memcpy(values, stored, static_cast<size_t>(n) * sizeof(float));
}

Rows rows_at(const float * values, int64_t size, int64_t rows) {
    Rows result;
    result.base = reinterpret_cast<const char *>(values);
    result.row_stride = static_cast<size_t>(size) * sizeof(float);
    result.head_stride = static_cast<size_t>(rows) * result.row_stride;
    result.to_float = copy_floats;
    return result;
}

// What is left of the past in its place: speakers, opened tokens, then the recent ones.
std::vector<float> short_rows(const Block & block, const Selection & selection, const std::vector<float> & speakers,
                              const float * rows, int64_t size) {
    std::vector<float> all = speakers;
    for (int64_t token = 0; token < block.tokens; token++) {
        const bool opened =
            std::find(selection.opened.begin(), selection.opened.end(), token) != selection.opened.end();
        if (opened || token >= block.past) {
            all.insert(all.end(), rows + (token * size), rows + ((token + 1) * size));
        }
    }
    return all;
}

// By attend_reference: counts of speakers stand in the mask.
std::vector<float> expected_output(const Block & block, const Selection & selection) {
    const auto keys = short_rows(block, selection, selection.keys, block.key, block.key_size);
    const auto values = short_rows(block, selection, selection.values, block.value, block.value_size);
    const int64_t columns = selection.read() + block.tokens - block.past;
    std::vector<float> mask(static_cast<size_t>(block.queries * columns), 0.0F);
    for (int64_t query = 0; query < block.queries; query++) {
        float * row = mask.data() + (query * columns);
        std::copy(selection.log_counts.begin(), selection.log_counts.end(), row);
        std::fill(row + columns - block.queries + query + 1, row + columns, hidden);
    }
    Attention a;
    a.queries = block.queries, a.tokens = columns, a.heads = block.group, a.kv_heads = 1;
    a.key_size = block.key_size, a.value_size = block.value_size;
    a.query = rows_at(block.query, block.key_size, block.queries);
    a.key = rows_at(keys.data(), block.key_size, columns);
    a.value = rows_at(values.data(), block.value_size, columns);
    a.mask = rows_at(mask.data(), columns, block.queries);
    a.pre_scale = block.logit.pre_scale, a.soft_cap = block.logit.soft_cap, a.post_scale = block.logit.post_scale;
    std::vector<float> out(static_cast<size_t>(block.group * block.queries * block.value_size));
    a.out = reinterpret_cast<char *>(out.data());
    a.out_query_stride = static_cast<size_t>(block.value_size) * sizeof(float);
    a.out_head_stride = static_cast<size_t>(block.queries) * a.out_query_stride;
    AttentionScratch scratch;
    attend_reference(a, 0, 1, scratch);
    return out;
}

Selection random_selection(const Block & block, std::mt19937_64 & random) {
    Selection selection;
    selection.opened = test::random_opened(random, block.past, pick(random, 0, 4));
    const int64_t speakers = block.past > 0 ? pick(random, 0, 20) : 0;
    selection.keys = test::normal_floats(random, speakers * block.key_size);
    selection.values = test::normal_floats(random, speakers * block.value_size);
    for (int64_t i = 0; i < speakers; i++) {
        selection.log_counts.push_back(std::log(static_cast<float>(pick(random, 1, 300))));
    }
    return selection;
}

std::vector<float> output_of(const Block & block, const Selection & selection, Team & team) {
    std::vector<float> out(static_cast<size_t>(block.group * block.queries * block.value_size), 99.0F);
    attend_selection(block, selection, out.data(), team);
    return out;
}

// Where logits are large, their own rounding decides what can be asked for.
double largest_logit(const Block & block) {
    double largest = 0.0;
    for (int64_t row = 0; row < block.group * block.queries; row++) {
        for (int64_t token = 0; token < block.tokens; token++) {
            double product = 0.0;
            for (int64_t i = 0; i < block.key_size; i++) {
                product += static_cast<double>(block.query[(row * block.key_size) + i]) *
                           block.key[(token * block.key_size) + i];
            }
            largest = std::max(largest, std::fabs(product * block.logit.pre_scale * block.logit.post_scale));
        }
    }
    return largest;
}

void expect_near(const std::vector<float> & expected, const std::vector<float> & actual, double tolerance) {
    ASSERT_EQ(expected.size(), actual.size());
    for (size_t i = 0; i < expected.size(); i++) {
        ASSERT_NEAR(expected[i], actual[i], tolerance) << "value " << i;
    }
}

void give_logit(Block & block, int round) {
    block.logit.soft_cap = round % 5 == 2 ? 3.0F : 0.0F;
    block.logit.post_scale = round % 7 == 3 ? 0.6F : 1.0F;
}

class EveryIsa : public testing::TestWithParam<const char *> {
  protected:
    EveryIsa() : before(isa_in_use()) { EXPECT_TRUE(use_isa(GetParam())); }
    ~EveryIsa() override { use_isa(before.c_str()); }
    EveryIsa(const EveryIsa &) = delete;
    EveryIsa & operator=(const EveryIsa &) = delete;

    std::string before;
    Team one{ 1 };
    Team three{ 3 };
};

TEST_P(EveryIsa, AttentionOnASelectionIsTheReferences) {
    std::mt19937_64 random(5);
    for (int round = 0; round < 250; round++) {
        const BlockShape shape = test::random_shape(random);
        SCOPED_TRACE(testing::Message() << "round " << round << ": " << shape);
        MadeBlock made(shape, random(), round % 6 == 5 ? 30.0F : 1.0F);
        give_logit(made.block, round);
        const Selection selection = random_selection(made.block, random);
        const auto actual = output_of(made.block, selection, one);
        const double tolerance = 5e-6 * (2.0 + largest_logit(made.block));
        ASSERT_NO_FATAL_FAILURE(expect_near(expected_output(made.block, selection), actual, tolerance));
        ASSERT_EQ(actual, output_of(made.block, selection, three));
    }
}

TEST_P(EveryIsa, SharesOfThePastAreTheirDefinitions) {
    std::mt19937_64 random(6);
    for (int round = 0; round < 250; round++) {
        const BlockShape shape = test::random_shape(random);
        SCOPED_TRACE(testing::Message() << "round " << round << ": " << shape);
        MadeBlock made(shape, random());
        give_logit(made.block, round);
        std::vector<int64_t> rows; // none: all
        for (int64_t i = 0; i < round % 4 * 5; i++) {
            rows.push_back(pick(random, 0, (shape.group * shape.queries) - 1));
        }
        const auto keys = test::normal_floats(random, shape.past * shape.key_size);
        const Rank rank = round % 2 == 0 ? Rank::largest : Rank::sum;
        const auto actual = past_shares(made.block, keys.data(), rows, rank, one);
        const double tolerance = 1e-5 * (rank == Rank::sum ? 10.0 : 1.0);
        ASSERT_NO_FATAL_FAILURE(expect_near(past_shares_plain(made.block, keys.data(), rows, rank), actual, tolerance));
        ASSERT_EQ(actual, past_shares(made.block, keys.data(), rows, rank, three));
    }
}

// A block may have no recent tokens of its own (earlier queries asked about the past): its queries see all of the past.
TEST_P(EveryIsa, SharesOfThePastAloneAreOfAllOfIt) {
    std::mt19937_64 random(7);
    for (const int64_t past : { 3, 20, 40, 200 }) {
        MadeBlock made({ 30, 2, past, 0, 24, 8 }, random());
        made.block.tokens = past;
        for (const Rank rank : { Rank::largest, Rank::sum }) {
            const auto actual = past_shares(made.block, made.key.data(), {}, rank, one);
            ASSERT_NO_FATAL_FAILURE(expect_near(past_shares_plain(made.block, made.key.data(), {}, rank), actual, 1e-4))
                << "past " << past;
        }
    }
}

// Written out once more: speakers, then the recent tokens that a query sees.
std::vector<float> naive_speaker_shares(const Block & block, const Selection & speaking, Rank rank) {
    const auto logit = [&](const float * query, const float * key) {
        double product = 0.0;
        for (int64_t i = 0; i < block.key_size; i++) {
            product += static_cast<double>(query[i]) * key[i];
        }
        const double x = block.logit.pre_scale * product;
        return block.logit.post_scale * (block.logit.soft_cap != 0.0F ? block.logit.soft_cap * std::tanh(x) : x);
    };
    std::vector<double> result(speaking.log_counts.size(), 0.0);
    for (int64_t row = 0; row < block.group * block.queries; row++) {
        const float * query = block.query + (row * block.key_size);
        std::vector<double> weights;
        for (int64_t i = 0; i < speaking.speakers(); i++) {
            weights.push_back(std::exp(logit(query, speaking.keys.data() + (i * block.key_size)) +
                                       speaking.log_counts[static_cast<size_t>(i)]));
        }
        double total = 0.0;
        for (const double weight : weights) {
            total += weight;
        }
        const int64_t last = block.tokens - block.queries + (row % block.queries);
        for (int64_t token = block.past; token <= last; token++) {
            total += std::exp(logit(query, block.key + (token * block.key_size)));
        }
        for (size_t i = 0; i < weights.size(); i++) {
            const double share = weights[i] / total;
            result[i] = rank == Rank::sum ? result[i] + share : std::max(result[i], share);
        }
    }
    return { result.begin(), result.end() };
}

TEST_P(EveryIsa, SharesOfSpeakersAreTheirDefinitions) {
    std::mt19937_64 random(8);
    for (int round = 0; round < 150; round++) {
        const BlockShape shape = test::random_shape(random);
        SCOPED_TRACE(testing::Message() << "round " << round << ": " << shape);
        MadeBlock made(shape, random());
        give_logit(made.block, round);
        const Selection speaking = random_selection(made.block, random);
        const Rank rank = round % 2 == 0 ? Rank::largest : Rank::sum;
        const auto actual = speaker_shares(made.block, speaking.keys.data(), speaking.log_counts, rank, one);
        const double tolerance = 1e-5 * (rank == Rank::sum ? 10.0 : 1.0);
        ASSERT_NO_FATAL_FAILURE(expect_near(naive_speaker_shares(made.block, speaking, rank), actual, tolerance));
        ASSERT_EQ(actual, speaker_shares(made.block, speaking.keys.data(), speaking.log_counts, rank, three));
    }
}

INSTANTIATE_TEST_SUITE_P(Selection, EveryIsa, testing::ValuesIn(available_isas()),
                         [](const auto & given) { return std::string(given.param); });

// Calls `check` for each instruction set that the machine has and the library was compiled for.
void on_every_target(const std::function<void()> & check) {
    int64_t left = hwy::SupportedTargets();
    while (left != 0) {
        const int64_t target = left & -left;
        left -= target;
        SCOPED_TRACE(hwy::TargetName(target));
        hwy::SetSupportedTargetsForTest(target);
        hwy::GetChosenTarget().Update(target);
        check();
    }
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

// Values in segments of 16, `step` apart, with something else between them that must stay.
void check_exponentials() {
    std::mt19937_64 random(9);
    for (int round = 0; round < 60; round++) {
        const int64_t segments = pick(random, 1, 9);
        const int64_t step = 16 * pick(random, 1, 3);
        const auto size = static_cast<size_t>(segments * step);
        std::vector<float> row(size, 7.0F);
        float largest = hidden;
        for (size_t i = 0; i < size; i++) {
            if (static_cast<int64_t>(i) % step < 16) {
                row[i] =
                    pick(random, 0, 5) == 0 && i > 0 ? hidden : static_cast<float>(pick(random, -9000, 9000)) / 100.0F;
                largest = std::max(largest, row[i]);
            }
        }
        ASSERT_EQ(attend::largest_of(row.data(), segments, step), largest);
        const std::vector<float> before = row;
        const float sum = attend::exponentials(row.data(), segments, step, largest);
        double expected_sum = 0.0;
        for (size_t i = 0; i < size; i++) {
            if (static_cast<int64_t>(i) % step >= 16) {
                ASSERT_EQ(row[i], 7.0F);
                continue;
            }
            const double expected = std::exp(static_cast<double>(before[i]) - largest);
            expected_sum += expected;
            ASSERT_NEAR(row[i], expected, (1e-5 * expected) + 1e-37) << before[i] - largest;
            ASSERT_TRUE(before[i] != hidden || row[i] == 0.0F);
        }
        ASSERT_NEAR(sum, expected_sum, 1e-5 * expected_sum);
    }
}

TEST(Exponentials, AreThoseOfTheLibrary) { on_every_target(check_exponentials); }

TEST(Exponentials, OfTheLargestIsOneAndOfTheHiddenNothing) {
    on_every_target([] {
        std::vector<float> row(16, hidden);
        row[11] = -3e38F;
        EXPECT_EQ(attend::largest_of(row.data(), 1, 16), -3e38F);
        EXPECT_EQ(attend::exponentials(row.data(), 1, 16, -3e38F), 1.0F);
        EXPECT_EQ(row[11], 1.0F);
        EXPECT_EQ(row[0], 0.0F);
    });
}

} // namespace
} // namespace cascade
