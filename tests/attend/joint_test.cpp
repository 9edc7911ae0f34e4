// The rules that read speakers, against their statements in naive loops that share nothing with them but the structs:
// proportional, refine and joint with every rest.
#include "attend/compressed_keys.h"
#include "attend/method.h"
#include "support/made_block.h"

#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>
#include <set>

namespace cascade {
namespace {

using test::MadeBlock;
using test::pick;

constexpr double tie = 1e-5; // of shares, relative: either may be opened
constexpr int64_t rest_block = 32;

double logit_of(const Block & block, const float * query, const float * key) {
    double product = 0.0;
    for (int64_t i = 0; i < block.key_size; i++) {
        product += static_cast<double>(query[i]) * key[i];
    }
    return block.logit.pre_scale * product;
}

// What each row of `keys` gets, with `log_counts` added, before the recent tokens.
std::vector<double> naive_shares(const Block & block, const std::vector<float> & keys,
                                 const std::vector<double> & log_counts, Rank rank) {
    std::vector<double> shares(log_counts.size(), 0.0);
    for (int64_t row = 0; row < block.group * block.queries; row++) {
        const float * query = block.query + (row * block.key_size);
        double total = 0.0;
        std::vector<double> weights;
        for (size_t i = 0; i < log_counts.size(); i++) {
            const float * key = keys.data() + (i * static_cast<size_t>(block.key_size));
            weights.push_back(std::exp(logit_of(block, query, key) + log_counts[i]));
            total += weights.back();
        }
        for (int64_t token = block.past; token <= block.tokens - block.queries + (row % block.queries); token++) {
            total += std::exp(logit_of(block, query, block.key + (token * block.key_size)));
        }
        for (size_t i = 0; i < shares.size(); i++) {
            const double share = weights[i] / total;
            shares[i] = rank == Rank::sum ? shares[i] + share : std::max(shares[i], share);
        }
    }
    return shares;
}

// joint.py's low_bit around the mean, in float: in double, values half way between two steps would go either way.
std::vector<float> naive_low_bit(const Block & block, int bits) {
    const int64_t size = block.key_size;
    std::vector<float> keys(block.key, block.key + (block.past * size));
    if (bits == 16) {
        return keys;
    }
    std::vector<float> means;
    for (int64_t i = 0; i < size; i++) {
        double sum = 0.0;
        for (int64_t token = 0; token < block.past; token++) {
            sum += block.key[(token * size) + i];
        }
        means.push_back(static_cast<float>(sum / static_cast<double>(block.past)));
        for (int64_t token = 0; token < block.past; token++) {
            keys[static_cast<size_t>((token * size) + i)] -= means.back();
        }
    }
    for (int64_t token = 0; token < block.past; token++) {
        float * row = keys.data() + (token * size);
        float largest = 0.0F;
        for (int64_t i = 0; i < size; i++) {
            largest = std::max(largest, std::fabs(row[i]));
        }
        const float step = largest / (std::pow(2.0F, static_cast<float>(bits - 1)) - 1.0F);
        for (int64_t i = 0; i < size; i++) {
            const float rounded = step > 0.0F ? std::nearbyint(row[i] / step) * step : row[i];
            row[i] = rounded + means[static_cast<size_t>(i)];
        }
    }
    return keys;
}

using Groups = std::vector<std::vector<int32_t>>; // members

Groups clusters_of(const Block & block) {
    Groups groups;
    for (const int32_t representative : block.cover->representatives) {
        groups.emplace_back();
        for (int32_t token = 0; token < block.past; token++) {
            if (block.cover->assigned[static_cast<size_t>(token)] == representative) {
                groups.back().push_back(token);
            }
        }
    }
    return groups;
}

Groups blocks_of(int64_t past, int64_t size) {
    Groups groups(static_cast<size_t>((past + size - 1) / size));
    for (int32_t token = 0; token < past; token++) {
        groups[static_cast<size_t>(token / size)].push_back(token);
    }
    return groups;
}

// Rows that would be read: what is opened, and a speaker for each group that has somebody left.
int64_t rows_read(const std::set<int32_t> & opened, const Groups & groups) {
    auto read = static_cast<int64_t>(opened.size());
    for (const auto & group : groups) {
        read +=
            std::any_of(group.begin(), group.end(), [&](int32_t token) { return opened.count(token) == 0; }) ? 1 : 0;
    }
    return read;
}

// In the order given, as long as the next one still fits.
std::set<int32_t> open_naively(const std::vector<int32_t> & order, const Groups & groups, int64_t budget) {
    std::set<int32_t> opened;
    for (const int32_t token : order) {
        std::set<int32_t> more = opened;
        more.insert(token);
        if (rows_read(more, groups) > budget) {
            break;
        }
        opened = std::move(more);
    }
    return opened;
}

template <typename Score>
std::vector<int32_t> falling(const std::vector<Score> & scores) {
    std::vector<int32_t> order(scores.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
        return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
    });
    return order;
}

bool is_near(double a, double b) { return std::fabs(a - b) <= tie * std::max(a, b); }

// Equal but for tokens whose shares are as good as that of the last one opened or of the first one not opened.
void expect_opened(const std::set<int32_t> & expected, const Selection & actual, const std::vector<double> & shares) {
    double last = 2.0;
    double next = 0.0;
    for (size_t token = 0; token < shares.size(); token++) {
        if (expected.count(static_cast<int32_t>(token)) != 0) {
            last = std::min(last, shares[token]);
        } else {
            next = std::max(next, shares[token]);
        }
    }
    ASSERT_TRUE(std::is_sorted(actual.opened.begin(), actual.opened.end()));
    const std::set<int32_t> opened(actual.opened.begin(), actual.opened.end());
    ASSERT_EQ(opened.size(), actual.opened.size());
    for (size_t token = 0; token < shares.size(); token++) {
        const bool same = expected.count(static_cast<int32_t>(token)) == opened.count(static_cast<int32_t>(token));
        ASSERT_TRUE(same || is_near(shares[token], last) || is_near(shares[token], next)) << "token " << token;
    }
}

void expect_mean(const float * rows, int64_t size, const std::vector<int32_t> & of, const float * actual) {
    for (int64_t i = 0; i < size; i++) {
        double sum = 0.0;
        for (const int32_t token : of) {
            sum += rows[(token * size) + i];
        }
        ASSERT_NEAR(actual[i], sum / static_cast<double>(of.size()), 1e-5);
    }
}

void expect_speakers(const Block & block, const Groups & groups, const Selection & actual) {
    const std::set<int32_t> opened(actual.opened.begin(), actual.opened.end());
    int64_t speaker = 0;
    for (const auto & group : groups) {
        std::vector<int32_t> closed;
        std::copy_if(group.begin(), group.end(), std::back_inserter(closed),
                     [&](int32_t token) { return opened.count(token) == 0; });
        if (closed.empty()) {
            continue;
        }
        ASSERT_LT(speaker, actual.speakers());
        ASSERT_NEAR(actual.log_counts[static_cast<size_t>(speaker)], std::log(closed.size()), 1e-5);
        expect_mean(block.key, block.key_size, closed, actual.keys.data() + (speaker * block.key_size));
        expect_mean(block.value, block.value_size, closed, actual.values.data() + (speaker * block.value_size));
        speaker++;
    }
    ASSERT_EQ(speaker, actual.speakers());
}

// Whatever the groups are: everything closed is spoken for once, and nothing is lost of the sum of values.
void expect_all_spoken_for(const Block & block, const Selection & actual) {
    double count = 0.0;
    std::vector<double> spoken(static_cast<size_t>(block.value_size), 0.0);
    for (int64_t speaker = 0; speaker < actual.speakers(); speaker++) {
        const double own = std::exp(actual.log_counts[static_cast<size_t>(speaker)]);
        ASSERT_NEAR(own, std::round(own), 1e-4);
        count += std::round(own);
        for (int64_t i = 0; i < block.value_size; i++) {
            spoken[static_cast<size_t>(i)] +=
                own * actual.values[static_cast<size_t>((speaker * block.value_size) + i)];
        }
    }
    ASSERT_EQ(static_cast<int64_t>(count) + static_cast<int64_t>(actual.opened.size()), block.past);
    const std::set<int32_t> opened(actual.opened.begin(), actual.opened.end());
    for (int64_t i = 0; i < block.value_size; i++) {
        double closed = 0.0;
        for (int32_t token = 0; token < block.past; token++) {
            closed += opened.count(token) == 0 ? block.value[(token * block.value_size) + i] : 0.0;
        }
        ASSERT_NEAR(spoken[static_cast<size_t>(i)], closed, 1e-3);
    }
}

// The budget to the token, unless the speakers alone are more.
void expect_budget(const Block & block, const Groups & groups, double budget, const Selection & actual) {
    const int64_t allowed = tokens_in_budget(block, budget);
    ASSERT_EQ(actual.read(), std::max(allowed, static_cast<int64_t>(groups.size())));
}

class Speaking : public testing::Test {
  protected:
    // Small enough for naive loops, with one in a while that is long enough for a budget in percent.
    MadeBlock made(int round) {
        test::BlockShape shape = { pick(random, 1, 20), pick(random, 1, 3),  pick(random, 1, 60),
                                   pick(random, 0, 10), pick(random, 1, 20), pick(random, 1, 10) };
        shape.past = round % 5 == 4 ? pick(random, 100, 150) : shape.past;
        return MadeBlock(shape, random());
    }
    double some_budget() { return std::array{ 0.0, 0.1, 0.2, 0.5, 0.9, 1.0 }[random() % 6]; }

    std::mt19937_64 random{ 11 };
    Team team{ 2 };
};

TEST_F(Speaking, ProportionalOpensWhatResemblesItsRepresentativeLeast) {
    for (int round = 0; round < 150; round++) {
        SCOPED_TRACE(round);
        const MadeBlock one = made(round);
        MethodOptions options;
        options.budget = some_budget();
        const Selection actual = select_proportional(one.block, options, team);
        std::vector<float> strangeness;
        for (const float similarity : one.cover.similarity) {
            strangeness.push_back(-similarity);
        }
        const Groups groups = clusters_of(one.block);
        const auto expected = open_naively(falling(strangeness), groups, tokens_in_budget(one.block, options.budget));
        ASSERT_EQ(std::vector<int32_t>(expected.begin(), expected.end()), actual.opened);
        ASSERT_NO_FATAL_FAILURE(expect_speakers(one.block, groups, actual));
        ASSERT_NO_FATAL_FAILURE(expect_all_spoken_for(one.block, actual));
        ASSERT_NO_FATAL_FAILURE(expect_budget(one.block, groups, options.budget, actual));
        ASSERT_EQ(actual.index_bits, 0.0);
    }
}

// Cluster after cluster by the share that its speaker gets; false: two are too near to say which comes first.
bool naive_refine_order(const Block & block, const Groups & groups, Rank rank, std::vector<int32_t> & order) {
    std::vector<float> keys;
    std::vector<double> log_counts;
    for (const auto & group : groups) {
        for (int64_t i = 0; i < block.key_size; i++) {
            double sum = 0.0;
            for (const int32_t token : group) {
                sum += block.key[(token * block.key_size) + i];
            }
            keys.push_back(static_cast<float>(sum / static_cast<double>(group.size())));
        }
        log_counts.push_back(std::log(static_cast<double>(group.size())));
    }
    const std::vector<double> shares = naive_shares(block, keys, log_counts, rank);
    const std::vector<int32_t> by_share = falling(shares);
    for (size_t i = 0; i < by_share.size(); i++) {
        const auto & tokens = groups[static_cast<size_t>(by_share[i])];
        order.insert(order.end(), tokens.begin(), tokens.end());
        if (i > 0 && is_near(shares[static_cast<size_t>(by_share[i - 1])], shares[static_cast<size_t>(by_share[i])])) {
            return false;
        }
    }
    return true;
}

TEST_F(Speaking, RefineOpensTheHeaviestClusters) {
    int compared = 0;
    for (int round = 0; round < 200; round++) {
        SCOPED_TRACE(round);
        const MadeBlock one = made(round);
        MethodOptions options;
        options.budget = some_budget();
        options.rank = round % 2 == 0 ? Rank::largest : Rank::sum;
        const Selection actual = select_refine(one.block, options, team);
        const Groups groups = clusters_of(one.block);
        ASSERT_NO_FATAL_FAILURE(expect_speakers(one.block, groups, actual));
        ASSERT_NO_FATAL_FAILURE(expect_all_spoken_for(one.block, actual));
        ASSERT_NO_FATAL_FAILURE(expect_budget(one.block, groups, options.budget, actual));
        std::vector<int32_t> order;
        if (naive_refine_order(one.block, groups, options.rank, order)) {
            const auto expected = open_naively(order, groups, tokens_in_budget(one.block, options.budget));
            ASSERT_EQ(std::vector<int32_t>(expected.begin(), expected.end()), actual.opened);
            compared++;
        }
    }
    EXPECT_GT(compared, 190);
}

Groups groups_of(const Block & block, Rest rest) {
    switch (rest) {
    case Rest::cover:
        return clusters_of(block);
    case Rest::blocks:
        return blocks_of(block.past, rest_block);
    case Rest::mean:
        return blocks_of(block.past, block.past);
    default:
        return {};
    }
}

constexpr std::array rests = { Rest::cover, Rest::blocks, Rest::groups, Rest::mean, Rest::drop };

class Joint : public Speaking {
  protected:
    MethodOptions some_options(int round) {
        MethodOptions options;
        options.budget = some_budget();
        options.bits = static_cast<int>(pick(random, 2, 16));
        options.rank = round % 2 == 0 ? Rank::largest : Rank::sum;
        options.rest = rests[static_cast<size_t>(round) % rests.size()];
        return options;
    }
    std::vector<double> shares_of(const Block & block, const MethodOptions & options) const {
        // A rotated copy by naive loops would need an eigenvalue solver of its own; its recovery is tested elsewhere
        const auto rough = options.coordinates == 0 ? naive_low_bit(block, options.bits)
                                                    : attend::compressed_keys(block.key, block.past, block.key_size,
                                                                              { options.bits, options.coordinates });
        return naive_shares(block, rough, std::vector<double>(static_cast<size_t>(block.past), 0.0), options.rank);
    }
    static void expect_rest(const Block & block, const MethodOptions & options, const Selection & actual) {
        if (options.rest == Rest::drop) {
            ASSERT_EQ(actual.speakers(), 0);
            return;
        }
        ASSERT_NO_FATAL_FAILURE(expect_all_spoken_for(block, actual));
        if (options.rest == Rest::groups) {
            ASSERT_LE(actual.speakers(), block.cover->size());
        } else {
            ASSERT_NO_FATAL_FAILURE(expect_speakers(block, groups_of(block, options.rest), actual));
        }
    }
};

TEST_F(Joint, OpensWhatCompressedKeysSayAndSpeaksForTheRest) {
    for (int round = 0; round < 300; round++) {
        const MadeBlock one = made(round);
        MethodOptions options = some_options(round);
        options.coordinates = round % 4 == 3 ? pick(random, 1, one.block.key_size + 2) : 0;
        SCOPED_TRACE(testing::Message() << "round " << round << " rest " << static_cast<int>(options.rest) << " bits "
                                        << options.bits << " past " << one.block.past);
        const Selection actual = select_joint(one.block, options, team);
        ASSERT_NO_FATAL_FAILURE(expect_rest(one.block, options, actual));
        const int64_t allowed = tokens_in_budget(one.block, options.budget);
        if (options.rest == Rest::groups) { // whose are random: as many as clusters, each with a member
            ASSERT_EQ(actual.read(), std::max(allowed, one.cover.size()));
            const auto shares = shares_of(one.block, options);
            const auto order = falling(shares);
            const std::set<int32_t> first(order.begin(),
                                          order.begin() + static_cast<std::ptrdiff_t>(actual.opened.size()));
            ASSERT_NO_FATAL_FAILURE(expect_opened(first, actual, shares));
            continue;
        }
        const Groups groups = groups_of(one.block, options.rest);
        ASSERT_NO_FATAL_FAILURE(expect_budget(one.block, groups, options.budget, actual));
        const auto shares = shares_of(one.block, options);
        ASSERT_NO_FATAL_FAILURE(expect_opened(open_naively(falling(shares), groups, allowed), actual, shares));
    }
}

TEST_F(Joint, AGateOpensWhatReachesEpsilon) {
    for (int round = 0; round < 150; round++) {
        SCOPED_TRACE(round);
        const MadeBlock one = made(round);
        MethodOptions options = some_options(round);
        options.epsilon = std::array{ 0.0, 1e-4, 0.01, 0.1, 1.0 }[random() % 5];
        const Selection actual = select_joint(one.block, options, team);
        ASSERT_NO_FATAL_FAILURE(expect_rest(one.block, options, actual));
        const auto shares = shares_of(one.block, options);
        for (int32_t token = 0; token < one.block.past; token++) {
            const double share = shares[static_cast<size_t>(token)];
            const bool opened = std::binary_search(actual.opened.begin(), actual.opened.end(), token);
            ASSERT_TRUE(opened == (share >= options.epsilon) || is_near(share, options.epsilon)) << "token " << token;
        }
        if (options.epsilon == 0.0) {
            ASSERT_EQ(static_cast<int64_t>(actual.opened.size()), one.block.past);
            ASSERT_EQ(actual.speakers(), 0);
        }
    }
}

TEST_F(Joint, RandomGroupsAreTheSeeds) {
    test::BlockShape shape = { 8, 2, 80, 4, 12, 6 };
    MadeBlock one(shape, 3);
    one.cover = test::random_cover(random, shape.past, 10);
    MethodOptions options;
    options.rest = Rest::groups;
    const Selection first = select_joint(one.block, options, team);
    EXPECT_EQ(first.keys, select_joint(one.block, options, team).keys);
    one.block.seed++;
    const Selection other = select_joint(one.block, options, team);
    EXPECT_NE(first.keys, other.keys);
    EXPECT_EQ(first.opened, other.opened);
}

TEST_F(Joint, NothingIsChosenWhereNothingIsPast) {
    const MadeBlock one({ 5, 2, 0, 3, 8, 8 }, 1);
    for (const auto select : { select_proportional, select_refine, select_joint }) {
        for (const Rest rest : rests) {
            MethodOptions options;
            options.rest = rest;
            const Selection actual = select(one.block, options, team);
            EXPECT_EQ(actual.read(), 0);
            EXPECT_EQ(actual.index_bits, 0.0);
        }
    }
}

TEST_F(Joint, SaysWhatItsIndexTakes) {
    const MadeBlock one({ 5, 2, 30, 3, 20, 8 }, 1);
    MethodOptions options;
    EXPECT_EQ(select_joint(one.block, options, team).index_bits, (20 * 4) + 16);
    options.bits = 16;
    EXPECT_EQ(select_joint(one.block, options, team).index_bits, 20 * 16);
    options.coordinates = 5;
    EXPECT_EQ(select_joint(one.block, options, team).index_bits, 5 * 16);
}

} // namespace
} // namespace cascade
