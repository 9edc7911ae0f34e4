// Fast covers against the plain ones, to the bit: every method, instruction set and number of threads, over random
// and nasty rows; and what each method promises.
#include "cascade/cover.h"
#include "cover/plain.h"
#include "support/token_rows.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <stdexcept>

using namespace cascade;
using cascade::test::MadeRows;

namespace {

#ifdef NDEBUG
const std::vector<double> taus = { 0.1, 0.3, 0.6 };
#else
const std::vector<double> taus = { 0.3 }; // sanitizers take their time
#endif

constexpr InheritForm forms[] = { InheritForm::printed, InheritForm::causal, InheritForm::linked };

void expect_equal(const Cover & fast, const Cover & plain) {
    EXPECT_EQ(fast.representatives, plain.representatives);
    EXPECT_EQ(fast.assigned, plain.assigned);
    EXPECT_EQ(fast.similarity, plain.similarity);
}

// What a true cover promises.
void expect_covers(const plain::Gram & gram, const Cover & cover, const CoverOptions & options) {
    ASSERT_EQ(cover.tokens(), gram.tokens());
    for (int32_t t = 0; t < gram.tokens(); t++) {
        const int32_t speaker = cover.assigned[static_cast<size_t>(t)];
        ASSERT_TRUE(std::binary_search(cover.representatives.begin(), cover.representatives.end(), speaker));
        ASSERT_LE(speaker, t);
        if (speaker != t) {
            ASSERT_GE(gram(t, speaker), options.threshold());
            ASSERT_EQ(gram(t, speaker), cover.similarity[static_cast<size_t>(t)]);
        }
    }
}

void expect_apart(const plain::Gram & gram, const Cover & cover, const CoverOptions & options) {
    for (const int32_t a : cover.representatives) {
        for (const int32_t b : cover.representatives) {
            ASSERT_TRUE(a == b || gram(a, b) < options.threshold()) << a << " " << b;
        }
    }
}

void compare_all(const MadeRows & made, const CoverOptions & options, Team & team) {
    const TokenRows rows = made.rows();
    const TokenRows next = made.next_layer();
    const plain::Gram gram(rows, options.sign);
    const plain::Gram next_gram(next, options.sign);
    const Cover leader = leader_cover(rows, options, team);
    expect_equal(leader, plain::leader_cover(gram, options.threshold()));
    expect_covers(gram, leader, options);
    expect_apart(gram, leader, options);
    const Cover threshold = threshold_cover(rows, options, team);
    expect_equal(threshold, plain::threshold_cover(gram, options.threshold()));
    for (const InheritForm form : forms) {
        for (const Cover & below : { leader, threshold }) {
            const Inherited fast = inherit_cover(next, below, form, options, team);
            const Inherited slow = plain::inherit_cover(next_gram, below, form, options.threshold());
            expect_equal(fast.cover, slow.cover);
            EXPECT_EQ(fast.adds, slow.adds);
            EXPECT_EQ(fast.removes, slow.removes);
            EXPECT_EQ(fast.inherited, below.size());
            if (form != InheritForm::printed) {
                expect_covers(next_gram, fast.cover, options);
                EXPECT_EQ(uncovered_tokens(next, fast.cover.representatives, options, team), 0);
            }
        }
    }
    const auto drawn = random_representatives(rows.tokens, rows.tokens / 3, 7);
    for (const Reach reach : { Reach::anywhere, Reach::earlier }) {
        expect_equal(assign(rows, drawn, reach, options, team), plain::assign(gram, drawn, reach));
    }
}

class EveryIsa : public testing::TestWithParam<const char *> {
  protected:
    void SetUp() override {
        ASSERT_TRUE(use_isa(GetParam()));
        ASSERT_STREQ(isa_in_use(), GetParam());
    }
    void TearDown() override { use_isa(available_isas().front()); }
};

TEST_P(EveryIsa, AgreesWithThePlainVersionToTheBit) {
    uint64_t made = 0;
    for (const int threads : { 1, 2, 4 }) {
        Team team(threads);
        for (const auto & shape : test::shapes()) {
            for (const double tau : taus) {
                const Sign sign = ++made % 2 == 0 ? Sign::kept : Sign::ignored;
                SCOPED_TRACE(testing::Message() << shape << " tau " << tau << " threads " << threads);
                compare_all(MadeRows(shape, made), { tau, sign }, team);
                ASSERT_FALSE(testing::Test::HasFailure());
            }
        }
    }
}

TEST_P(EveryIsa, LeadersOfAPrefixAreThePrefixOfTheLeaders) {
    Team team(2);
    const MadeRows made({ 700, 33, test::Kind::clusters }, 3);
    const Cover whole = leader_cover(made.rows(), {}, team);
    for (const int64_t tokens : { 0, 1, 191, 192, 193, 500 }) {
        TokenRows prefix = made.rows();
        prefix.tokens = tokens;
        const Cover part = leader_cover(prefix, {}, team);
        EXPECT_TRUE(std::equal(part.assigned.begin(), part.assigned.end(), whole.assigned.begin()));
        EXPECT_TRUE(
            std::equal(part.representatives.begin(), part.representatives.end(), whole.representatives.begin()));
    }
}

TEST_P(EveryIsa, HeadsAreCoveredLikeRowsOfTheirOwn) {
    Team team(2);
    const MadeRows made({ 100, 48, test::Kind::clusters }, 4);
    for (int64_t head = 0; head < 3; head++) {
        std::vector<float> packed;
        const TokenRows part = made.rows().head(head, 3);
        for (int64_t t = 0; t < part.tokens; t++) {
            packed.insert(packed.end(), part.row(t), part.row(t) + part.size);
        }
        expect_equal(leader_cover(part, {}, team), leader_cover({ packed.data(), 100, 16, 16 }, {}, team));
    }
}

INSTANTIATE_TEST_SUITE_P(Cover, EveryIsa, testing::ValuesIn(available_isas()),
                         [](const auto & isa) { return std::string(isa.param); });

TEST(Cover, RowsThatResembleNothingStandAlone) {
    Team team(1);
    const float nan = std::nanf("");
    const float inf = std::numeric_limits<float>::infinity();
    const std::vector<float> data = { 1, 0, 0, 0, nan, 1, 0, 0, inf, 0, 1, 0, 2, 1e-45F, 3e38F, 3e38F, 1e-45F, 0 };
    const TokenRows rows = { data.data(), 9, 2, 2 };
    for (const Cover & cover : { leader_cover(rows, {}, team), threshold_cover(rows, {}, team) }) {
        // Zeros, a NaN and an infinity stand alone; the largest and the smallest floats are rows like any other.
        EXPECT_EQ(cover.representatives, (std::vector<int32_t>{ 0, 1, 2, 3, 4, 7 }));
        EXPECT_EQ(cover.assigned, (std::vector<int32_t>{ 0, 1, 2, 3, 4, 0, 0, 7, 0 }));
    }
}

TEST(Cover, BadInputIsSaid) {
    Team team(1);
    const std::vector<float> data(8, 1.0F);
    const TokenRows rows = { data.data(), 4, 2, 2 };
    for (const double tau : { 0.0, 1.0, -1.0, 2.0, 1e-9, std::nan("") }) {
        EXPECT_THROW(leader_cover(rows, { tau }, team), std::invalid_argument) << tau;
    }
    EXPECT_THROW(leader_cover({ data.data(), 4, 0, 2 }, {}, team), std::invalid_argument);
    EXPECT_THROW(leader_cover({ data.data(), 4, 2, 1 }, {}, team), std::invalid_argument);
    EXPECT_THROW(leader_cover({ data.data(), int64_t{ 1 } << 40, 2, 2 }, {}, team), std::invalid_argument);
    for (const auto & set : std::vector<std::vector<int32_t>>{ { -1 }, { 4 }, { 1, 1 }, { 2, 1 } }) {
        EXPECT_THROW(assign(rows, set, Reach::anywhere, {}, team), std::invalid_argument);
        EXPECT_THROW(inherit_cover(rows, { set, { 0, 0, 0, 0 }, { 1, 1, 1, 1 } }, InheritForm::linked, {}, team),
                     std::invalid_argument);
    }
    EXPECT_THROW(inherit_cover(rows, { { 0 }, { 0, 0, 0 }, { 1, 1, 1 } }, InheritForm::linked, {}, team),
                 std::invalid_argument);
    EXPECT_THROW(inherit_cover(rows, { { 0 }, { 0, 0, 0, 4 }, { 1, 1, 1, 1 } }, InheritForm::linked, {}, team),
                 std::invalid_argument);
    EXPECT_FALSE(use_isa("abacus"));
}

TEST(Cover, WorkIsCountedAsThePaperCounts) {
    Team team(2);
    const MadeRows made({ 300, 24, test::Kind::clusters }, 5);
    Work independent;
    const Cover below = threshold_cover(made.rows(), {}, team, &independent);
    EXPECT_EQ(independent.gram_entries, 300U * 300U);
    EXPECT_GE(independent.multiply_adds, 300U * 299U / 2U * 24U);
    for (const InheritForm form : forms) {
        Work inherited;
        inherit_cover(made.next_layer(), below, form, {}, team, &inherited);
        EXPECT_EQ(inherited.gram_entries, 300U * static_cast<uint64_t>(below.size()));
    }
    // GPT-J's row of the paper's cost model: L = 28, T = 512, r = 240 throughout.
    const double savings = 1.0 - ((512.0 * 512 + 27 * 512.0 * 240) / (28 * 512.0 * 512));
    EXPECT_NEAR(savings, 0.51, 0.005);
}

TEST(Sets, JaccardAndWhatIsMissing) {
    const std::vector<int32_t> a = { 1, 3, 5, 9 };
    const std::vector<int32_t> b = { 3, 4, 9 };
    EXPECT_DOUBLE_EQ(jaccard(a, b), 2.0 / 5.0);
    EXPECT_DOUBLE_EQ(jaccard({}, {}), 1.0);
    EXPECT_DOUBLE_EQ(jaccard(a, {}), 0.0);
    EXPECT_EQ(missing_from(a, b), 1);
    EXPECT_EQ(missing_from(b, a), 2);
}

TEST(Sets, RandomOnesHaveTheirSizeAndSpreadEvenly) {
    std::vector<int> seen(50, 0);
    for (uint64_t seed = 0; seed < 2000; seed++) {
        const auto set = random_representatives(50, 20, seed);
        ASSERT_EQ(set.size(), 20U);
        ASSERT_TRUE(std::adjacent_find(set.begin(), set.end(), std::greater_equal<>()) == set.end());
        for (const int32_t token : set) {
            seen[static_cast<size_t>(token)]++;
        }
    }
    for (const int count : seen) {
        EXPECT_NEAR(count, 800, 5 * 22); // five standard deviations of a binomial
    }
    EXPECT_EQ(random_representatives(50, 50, 1).size(), 50U);
    EXPECT_TRUE(random_representatives(50, 0, 1).empty());
    EXPECT_THROW(random_representatives(5, 6, 1), std::invalid_argument);
}

TEST(Sets, AdaptiveTauFollowsTurnover) {
    EXPECT_DOUBLE_EQ(adapted_tau(0.3, 0.3, 0.10), 0.3);
    EXPECT_GT(adapted_tau(0.3, 0.3, 0.05), 0.3);
    EXPECT_LT(adapted_tau(0.3, 0.3, 0.20), 0.3);
    EXPECT_DOUBLE_EQ(adapted_tau(0.3, 0.3, 0.0), 0.3 * std::pow(2.0, 0.25));
    double tau = 0.3;
    for (int i = 0; i < 20; i++) {
        tau = adapted_tau(tau, 0.3, 0.0);
    }
    EXPECT_DOUBLE_EQ(tau, 0.6);
    EXPECT_DOUBLE_EQ(adapted_tau(0.9, 0.9, 0.0), 0.95);
}

TEST(Team, ThrowsOnWhatATaskThrows) {
    for (const int threads : { 1, 2, 4 }) {
        Team team(threads);
        const auto fail = [](int64_t i) {
            if (i == 7) {
                throw std::runtime_error("seven");
            }
        };
        EXPECT_THROW(team.run(20, fail), std::runtime_error);
        int64_t ran = 0;
        team.run(1, [&](int64_t) { ran++; }); // and goes on
        EXPECT_EQ(ran, 1);
    }
}

TEST(Team, RunsEveryTaskOnce) {
    for (const int threads : { 1, 2, 4 }) {
        Team team(threads);
        EXPECT_EQ(team.size(), threads);
        for (int64_t tasks = 0; tasks < 40; tasks++) {
            std::vector<int> ran(static_cast<size_t>(tasks), 0);
            team.run(tasks, [&](int64_t i) { ran[static_cast<size_t>(i)]++; });
            EXPECT_EQ(std::count(ran.begin(), ran.end(), 1), tasks);
        }
    }
}

} // namespace
