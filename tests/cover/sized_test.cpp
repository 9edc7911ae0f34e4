// Covers of a wanted size: never larger, hardly smaller, and everybody spoken for.
#include "cascade/cover.h"
#include "support/token_rows.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace cascade {
namespace {

using test::Kind;
using test::MadeRows;

void expect_valid(const Cover & cover, int64_t tokens, int64_t count) {
    ASSERT_LE(cover.size(), count);
    ASSERT_EQ(cover.size() > 0, tokens > 0);
    ASSERT_EQ(cover.tokens(), tokens);
    ASSERT_EQ(static_cast<int64_t>(cover.similarity.size()), tokens);
    ASSERT_TRUE(std::is_sorted(cover.representatives.begin(), cover.representatives.end()));
    for (int64_t token = 0; token < tokens; token++) {
        const int32_t speaker = cover.assigned[static_cast<size_t>(token)];
        ASSERT_TRUE(std::binary_search(cover.representatives.begin(), cover.representatives.end(), speaker))
            << "token " << token << " is assigned to " << speaker;
    }
    for (const int32_t representative : cover.representatives) {
        ASSERT_EQ(cover.assigned[static_cast<size_t>(representative)], representative);
    }
}

void expect_same(const Cover & a, const Cover & b) {
    EXPECT_EQ(a.representatives, b.representatives);
    EXPECT_EQ(a.assigned, b.assigned);
    EXPECT_EQ(a.similarity, b.similarity);
}

class Sized : public testing::Test {
  protected:
    Cover sized(const TokenRows & rows, int64_t count, double start = 0.5, Sign sign = Sign::kept) {
        tau = start;
        return sized_cover(rows, count, sign, tau, team);
    }
    double tau = 0.5;
    Team team{ 1 };
};

TEST_F(Sized, HasAtMostTheCountAndAPlaceForEverybody) {
    for (const test::Shape & shape : test::shapes()) {
        if (shape.tokens == 0 || shape.kind == Kind::degenerate) { // rows that resemble nothing: below
            continue;
        }
        const MadeRows made(shape, 3);
        for (const int64_t count :
             { int64_t{ 1 }, shape.tokens / 20, shape.tokens / 4, shape.tokens, shape.tokens + 7 }) {
            for (const Sign sign : { Sign::kept, Sign::ignored }) {
                SCOPED_TRACE(testing::Message() << shape << " count " << count);
                const int64_t wanted = std::max<int64_t>(1, count);
                ASSERT_NO_FATAL_FAILURE(expect_valid(sized(made.rows(), wanted, 0.5, sign), shape.tokens, wanted));
                EXPECT_GT(tau, 0.0);
                EXPECT_LT(tau, 1.0);
            }
        }
    }
}

TEST_F(Sized, IsNearTheCountWhereThresholdsCanTellTokensApart) {
    for (const Kind kind : { Kind::random, Kind::clusters, Kind::chains }) {
        for (const double share : { 0.05, 0.1, 0.25, 0.5, 0.9 }) {
            const MadeRows made({ 900, 40, kind }, 7);
            const auto count = static_cast<int64_t>(share * 900);
            const Cover cover = sized(made.rows(), count);
            EXPECT_GE(static_cast<double>(cover.size()), 0.9 * static_cast<double>(count))
                << "kind " << static_cast<int>(kind) << " share " << share;
        }
    }
}

TEST_F(Sized, IsALeaderCoverWhereThatIsSmallEnough) {
    const MadeRows made({ 400, 24, Kind::clusters }, 9);
    for (const int64_t count : { 30, 80, 200 }) {
        const Cover cover = sized(made.rows(), count);
        expect_same(cover, leader_cover(made.rows(), { tau, Sign::kept }, team));
    }
}

TEST_F(Sized, FindsTheSameAgainWhereItLeftOff) {
    for (const test::Shape & shape : test::shapes()) {
        if (shape.tokens < 30 || shape.kind == Kind::degenerate) {
            continue;
        }
        const MadeRows made(shape, 5);
        for (const int64_t count : { int64_t{ 1 }, shape.tokens / 8, shape.tokens / 3 }) {
            SCOPED_TRACE(testing::Message() << shape << " count " << count);
            const int64_t size = sized(made.rows(), count).size();
            const double found = tau;
            const int64_t again = sized(made.rows(), count, found).size();
            EXPECT_GE(again, size) << "what was good enough is tried first";
            EXPECT_LE(again, count);
        }
    }
}

TEST_F(Sized, DoesNotDependOnTheNumberOfThreads) {
    Team three(3);
    for (const Kind kind : { Kind::random, Kind::clusters, Kind::duplicates, Kind::degenerate }) {
        const MadeRows made({ 700, 33, kind }, 2);
        for (const int64_t count : { 1, 20, 300 }) {
            const Cover one = sized(made.rows(), count);
            double other = 0.5;
            expect_same(one, sized_cover(made.rows(), count, Sign::kept, other, three));
            EXPECT_EQ(tau, other);
        }
    }
}

TEST_F(Sized, DoesNotMindWhereItBegins) {
    const MadeRows made({ 500, 24, Kind::clusters }, 4);
    for (const double start : { -1.0, 0.0, 0.001, 0.02, 0.3, 0.97, 0.9995, 1.0, 5.0 }) {
        const Cover cover = sized(made.rows(), 60, start);
        ASSERT_NO_FATAL_FAILURE(expect_valid(cover, 500, 60));
        EXPECT_GE(cover.size(), 54) << "from " << start;
    }
}

TEST_F(Sized, OneSpeaksForAllThatAreEqual) {
    const MadeRows made({ 50, 9, Kind::same }, 1);
    for (const int64_t count : { 1, 10, 50 }) {
        const Cover cover = sized(made.rows(), count);
        EXPECT_EQ(cover.representatives, std::vector<int32_t>{ 0 });
        EXPECT_EQ(cover.assigned, std::vector<int32_t>(50, 0));
    }
}

// Where the sign is kept, no threshold lets one speak for its opposite: the first few have to do.
TEST_F(Sized, CutsShortWhatNoThresholdJoins) {
    constexpr int64_t size = 12;
    std::vector<float> data;
    for (int64_t axis = 0; axis < size; axis++) {
        for (const float sign : { 1.0F, -1.0F }) {
            std::vector<float> row(size, 0.0F);
            row[static_cast<size_t>(axis)] = sign;
            data.insert(data.end(), row.begin(), row.end());
        }
    }
    const TokenRows rows = { data.data(), 2 * size, size, size };
    for (const int64_t count : { 1, 5, 23, 24, 30 }) {
        const Cover cover = sized(rows, count);
        ASSERT_NO_FATAL_FAILURE(expect_valid(cover, 2 * size, count));
        EXPECT_EQ(cover.size(), std::min<int64_t>(count, 24));
    }
    const Cover cover = sized(rows, 2);
    EXPECT_EQ(cover.assigned[1], 1) << "the opposite stands for itself while there is room";
}

// Rows that resemble nothing speak for themselves while there is room; beyond it, each must still have a speaker, or
// whoever sums over clusters loses them.
TEST_F(Sized, RowsThatResembleNothingHaveASpeakerToo) {
    std::vector<float> zeros(20 * 4, 0.0F);
    const TokenRows rows = { zeros.data(), 20, 4, 4 };
    ASSERT_NO_FATAL_FAILURE(expect_valid(sized(rows, 20), 20, 20));
    EXPECT_EQ(sized(rows, 25).size(), 20);
    ASSERT_NO_FATAL_FAILURE(expect_valid(sized(rows, 3), 20, 3));
    const MadeRows made({ 200, 31, Kind::degenerate }, 3);
    for (const int64_t count : { 1, 10, 50, 200 }) {
        ASSERT_NO_FATAL_FAILURE(expect_valid(sized(made.rows(), count), 200, count)) << count;
    }
}

} // namespace
} // namespace cascade
