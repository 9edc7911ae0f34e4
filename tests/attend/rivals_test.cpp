// Each rule against a statement of it in double, by plain loops that share nothing with ours: over many small random
// shapes, ties and huge logits, for one and for three threads.
#include "attend/method.h"
#include "attend/plain_shares.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <set>

namespace cascade {
namespace {

using Doubles = std::vector<double>;
using Rule = Selection (*)(const Block &, const MethodOptions &, Team &);
const std::vector<std::pair<const char *, Rule>> rules = {
    { "streaming", select_streaming }, { "snapkv", select_snapkv },   { "blocks", select_blocks },
    { "quest", select_quest },         { "sampled", select_sampled }, { "random", select_random },
    { "oracle", select_oracle },
};

// Owns the arrays of one block, and knows what is true of it.
struct Problem {
    Block block;
    MethodOptions options;
    std::vector<float> q, k, v, earlier;

    static std::vector<float> normals(int64_t n, float scale, std::mt19937 & random) {
        std::normal_distribution<float> normal(0.0F, scale);
        std::vector<float> x(static_cast<size_t>(n));
        std::generate(x.begin(), x.end(), [&] { return normal(random); });
        return x;
    }

    Problem(int64_t queries, int64_t group, int64_t past, int64_t window, int64_t key_size, float scale,
            std::mt19937 & random) {
        block.queries = queries, block.group = group, block.past = past, block.tokens = past + window + queries;
        block.key_size = key_size, block.value_size = 3;
        block.earlier_queries = std::min<int64_t>(past, 5);
        q = normals(group * queries * key_size, scale, random);
        k = normals(block.tokens * key_size, scale, random);
        v = normals(block.tokens * block.value_size, 1.0F, random);
        earlier = normals(group * block.earlier_queries * key_size, scale, random);
        block.seed = random();
        point();
    }

    void point() {
        block.query = q.data(), block.key = k.data(), block.value = v.data(), block.earlier_query = earlier.data();
    }

    double logit(double product) const {
        const double x = product * block.logit.pre_scale;
        const double capped = block.logit.soft_cap == 0.0F ? x : block.logit.soft_cap * std::tanh(x);
        return capped * block.logit.post_scale;
    }

    double product(const std::vector<float> & queries, int64_t row, int64_t token) const {
        double sum = 0.0;
        for (int64_t j = 0; j < block.key_size; j++) {
            sum += static_cast<double>(queries[static_cast<size_t>(row * block.key_size + j)]) *
                   k[static_cast<size_t>(token * block.key_size + j)];
        }
        return sum;
    }

    // exp(logits) over their sum and that of the others, without overflow.
    static Doubles softmax(Doubles logits, const Doubles & others) {
        double top = -INFINITY;
        for (const double x : logits) {
            top = std::max(top, x);
        }
        for (const double x : others) {
            top = std::max(top, x);
        }
        double total = 0.0;
        for (const double x : logits) {
            total += std::exp(x - top);
        }
        for (const double x : others) {
            total += std::exp(x - top);
        }
        for (double & x : logits) {
            x = std::exp(x - top) / total;
        }
        return logits;
    }

    Doubles recent_logits(int64_t head, int64_t query) const {
        Doubles logits;
        for (int64_t token = block.past; token < block.tokens; token++) {
            if (token - (block.tokens - block.queries) <= query) { // its own place, or before
                logits.push_back(logit(product(q, head * block.queries + query, token)));
            }
        }
        return logits;
    }

    Doubles past_logits(const std::vector<float> & queries, int64_t row) const {
        Doubles logits;
        for (int64_t token = 0; token < block.past; token++) {
            logits.push_back(logit(product(queries, row, token)));
        }
        return logits;
    }

    Doubles true_shares(int64_t head, int64_t query) const {
        return softmax(past_logits(q, head * block.queries + query), recent_logits(head, query));
    }

    // How far a float's logit may be off, and so, relatively, its exponential.
    double tolerance() const {
        double largest = 0.0;
        for (const float x : k) {
            largest = std::max(largest, static_cast<double>(std::abs(x)));
        }
        double sum = 0.0;
        for (const std::vector<float> * queries : { &q, &earlier }) {
            for (size_t row = 0; row * static_cast<size_t>(block.key_size) < queries->size(); row++) {
                double of_row = 0.0;
                for (int64_t j = 0; j < block.key_size; j++) {
                    of_row += std::abs((*queries)[row * static_cast<size_t>(block.key_size) + static_cast<size_t>(j)]);
                }
                sum = std::max(sum, of_row);
            }
        }
        const double cap = block.logit.soft_cap == 0.0F ? 1.0 : block.logit.soft_cap;
        return 1e-5 + 1e-6 * sum * largest * block.logit.pre_scale * cap * block.logit.post_scale;
    }
};

double joined(double so_far, double share, Rank rank) {
    return rank == Rank::sum ? so_far + share : std::max(so_far, share);
}

// A score for each block of the past, by a function of (head, query) that gives the shares of all blocks.
template <typename Shares>
Doubles over_queries(const Problem & p, size_t scores, const Shares & shares) {
    Doubles result(scores, 0.0);
    for (int64_t head = 0; head < p.block.group; head++) {
        for (int64_t query = 0; query < p.block.queries; query++) {
            const Doubles of_query = shares(head, query);
            for (size_t i = 0; i < scores; i++) {
                result[i] = joined(result[i], of_query[i], p.options.rank);
            }
        }
    }
    return result;
}

Doubles oracle_scores(const Problem & p) {
    return over_queries(p, static_cast<size_t>(p.block.past),
                        [&](int64_t head, int64_t query) { return p.true_shares(head, query); });
}

// Tokens of each block.
std::vector<std::vector<int64_t>> members(const Problem & p) {
    std::vector<std::vector<int64_t>> result;
    for (int64_t token = 0; token < p.block.past; token++) {
        if (token % p.options.block == 0) {
            result.emplace_back();
        }
        result.back().push_back(token);
    }
    return result;
}

template <typename Estimate>
Doubles indexed_scores(const Problem & p, const Estimate & estimate) {
    const auto blocks = members(p);
    return over_queries(p, blocks.size(), [&](int64_t head, int64_t query) {
        Doubles logits;
        for (const auto & tokens : blocks) {
            double sum = 0.0;
            for (int64_t j = 0; j < p.block.key_size; j++) {
                Doubles column;
                for (const int64_t token : tokens) {
                    column.push_back(p.k[static_cast<size_t>(token * p.block.key_size + j)]);
                }
                const auto at = static_cast<size_t>((head * p.block.queries + query) * p.block.key_size + j);
                sum += estimate(static_cast<double>(p.q[at]), column);
            }
            logits.push_back(p.logit(sum) + std::log(static_cast<double>(tokens.size())));
        }
        return Problem::softmax(logits, p.recent_logits(head, query));
    });
}

Doubles mean_scores(const Problem & p) {
    return indexed_scores(p, [](double query, const Doubles & column) {
        double sum = 0.0;
        for (const double x : column) {
            sum += x;
        }
        return query * sum / static_cast<double>(column.size());
    });
}

Doubles bound_scores(const Problem & p) {
    return indexed_scores(p, [](double query, const Doubles & column) {
        const double low = *std::min_element(column.begin(), column.end());
        const double high = *std::max_element(column.begin(), column.end());
        return std::max(query * low, query * high);
    });
}

Doubles sampled_scores(const Problem & p) {
    const int64_t n = std::min(p.options.sample, p.block.queries);
    const auto blocks = members(p);
    Doubles scores(blocks.size(), 0.0);
    for (int64_t head = 0; head < p.block.group; head++) {
        for (int64_t s = 0; s < n; s++) {
            const double middle = (static_cast<double>(s) + 0.5) / static_cast<double>(n);
            const auto query = static_cast<int64_t>(std::floor(middle * static_cast<double>(p.block.queries) + 1e-9));
            const Doubles shares = p.true_shares(head, query);
            for (size_t i = 0; i < blocks.size(); i++) {
                for (const int64_t token : blocks[i]) {
                    scores[i] = joined(scores[i], shares[static_cast<size_t>(token)], p.options.rank);
                }
            }
        }
    }
    return scores;
}

Doubles earlier_scores(const Problem & p) {
    Doubles sums(static_cast<size_t>(p.block.past), 0.0);
    for (int64_t head = 0; head < p.block.group; head++) {
        for (int64_t back = 1; back <= std::min(p.options.sample, p.block.earlier_queries); back++) {
            const int64_t row = (head + 1) * p.block.earlier_queries - back;
            const Doubles shares = Problem::softmax(p.past_logits(p.earlier, row), {});
            for (size_t token = 0; token < sums.size(); token++) {
                sums[token] += shares[token];
            }
        }
    }
    Doubles pooled = sums;
    for (int64_t token = 0; token < p.block.past; token++) {
        for (int64_t other = 0; other < p.block.past; other++) {
            if (std::abs(other - token) <= 3) {
                double & score = pooled[static_cast<size_t>(token)];
                score = std::max(score, sums[static_cast<size_t>(other)]);
            }
        }
    }
    return pooled;
}

int64_t budget_of(const Problem & p) {
    const double exact = p.options.budget * static_cast<double>(p.block.past);
    const auto rounded = static_cast<int64_t>(std::floor(exact + 0.5));
    return p.block.past == 0 ? 0 : std::min(p.block.past, std::max<int64_t>(1, rounded));
}

// Whether the opened tokens are whole blocks by falling score with at most one in part, as far as float can tell
// scores apart; of equal scores the earliest.
void expect_best(const std::vector<int32_t> & opened, const Doubles & scores, int64_t past, int64_t size, double tol) {
    std::vector<int64_t> read(scores.size(), 0);
    for (const int32_t token : opened) {
        int64_t & count = read[static_cast<size_t>(token / size)];
        ASSERT_EQ(token % size, count) << "not the block's first tokens";
        count++;
    }
    const auto full = [&](size_t i) { return read[i] == std::min(size, past - static_cast<int64_t>(i) * size); };
    for (size_t a = 0; a < scores.size(); a++) {
        for (size_t b = 0; b < scores.size(); b++) {
            const bool better = scores[a] * (1.0 - tol) > scores[b] * (1.0 + tol) + 1e-7 * tol;
            const bool earlier = a < b && scores[a] == scores[b];
            if ((better || earlier) && read[b] > 0) {
                ASSERT_TRUE(full(a)) << a << " with " << scores[a] << " comes before " << b << " with " << scores[b];
            }
        }
    }
}

void expect_sound(const Selection & selection, const Problem & p) {
    const auto & opened = selection.opened;
    ASSERT_EQ(static_cast<int64_t>(opened.size()), budget_of(p));
    ASSERT_EQ(budget_of(p), tokens_in_budget(p.block, p.options.budget));
    ASSERT_EQ(selection.read(), budget_of(p));
    for (size_t i = 0; i < opened.size(); i++) {
        ASSERT_GE(opened[i], 0);
        ASSERT_LT(opened[i], p.block.past);
        ASSERT_TRUE(i == 0 || opened[i - 1] < opened[i]);
    }
}

void expect_streaming(const std::vector<int32_t> & opened, const Problem & p) {
    std::set<int32_t> wanted;
    for (int64_t token = 0; token < p.options.sinks && static_cast<int64_t>(wanted.size()) < budget_of(p); token++) {
        wanted.insert(static_cast<int32_t>(token));
    }
    for (int64_t token = p.block.past - 1; static_cast<int64_t>(wanted.size()) < budget_of(p); token--) {
        wanted.insert(static_cast<int32_t>(token));
    }
    ASSERT_EQ(opened, std::vector<int32_t>(wanted.begin(), wanted.end()));
}

void expect_all_rules(const Problem & p, Team & team) {
    const double tol = p.tolerance();
    const int64_t past = p.block.past;
    const int64_t size = p.options.block;
    const double key_bits = past > 0 ? 16.0 * static_cast<double>(p.block.key_size) : 0.0;
    for (const auto & [name, rule] : rules) {
        SCOPED_TRACE(name);
        ASSERT_NO_FATAL_FAILURE(expect_sound(rule(p.block, p.options, team), p));
    }
    ASSERT_NO_FATAL_FAILURE(expect_streaming(select_streaming(p.block, p.options, team).opened, p));

    const auto check = [&](const char * name, const Selection & selection, const Doubles & scores, int64_t block_size,
                           double bits) {
        SCOPED_TRACE(name);
        ASSERT_NO_FATAL_FAILURE(expect_best(selection.opened, scores, past, block_size, tol));
        ASSERT_DOUBLE_EQ(selection.index_bits, bits);
    };
    ASSERT_NO_FATAL_FAILURE(check("oracle", select_oracle(p.block, p.options, team), oracle_scores(p), 1, key_bits));
    ASSERT_NO_FATAL_FAILURE(check("blocks", select_blocks(p.block, p.options, team), mean_scores(p), size,
                                  key_bits / static_cast<double>(size)));
    ASSERT_NO_FATAL_FAILURE(check("quest", select_quest(p.block, p.options, team), bound_scores(p), size,
                                  2.0 * key_bits / static_cast<double>(size)));
    ASSERT_NO_FATAL_FAILURE(
        check("sampled", select_sampled(p.block, p.options, team), sampled_scores(p), size, key_bits));
    const Selection snapkv = select_snapkv(p.block, p.options, team);
    if (past > 0 && p.block.earlier_queries > 0) {
        ASSERT_NO_FATAL_FAILURE(check("snapkv", snapkv, earlier_scores(p), 1, key_bits));
    } else {
        ASSERT_NO_FATAL_FAILURE(expect_streaming(snapkv.opened, p));
        ASSERT_EQ(snapkv.index_bits, 0.0);
    }
}

Problem random_problem(int round, std::mt19937 & random) {
    const auto pick = [&](int64_t low, int64_t high) {
        return std::uniform_int_distribution<int64_t>(low, high)(random);
    };
    const float scale = round % 10 == 9 ? 40.0F : 1.0F; // products of thousands: exponentials overflow even in double
    const int64_t past = round % 13 == 0 ? 0 : pick(1, 70);
    Problem p(pick(1, 9), pick(1, 4), past, pick(0, 6), pick(1, 20), scale, random);
    p.block.logit.pre_scale = round % 10 == 9 ? 1.0F : 0.4F;
    p.block.logit.soft_cap = round % 4 == 3 ? 2.5F : 0.0F;
    p.block.logit.post_scale = round % 3 == 2 ? 1.3F : 1.0F;
    p.options.budget = round % 7 == 0 ? 1.0 : std::uniform_real_distribution<double>(0.01, 1.0)(random);
    p.options.block = pick(1, 33), p.options.sample = pick(1, 9), p.options.sinks = pick(0, 9);
    p.options.rank = round % 2 == 0 ? Rank::sum : Rank::largest;
    p.block.earlier_queries = round % 11 == 5 ? 0 : p.block.earlier_queries;
    if (round % 3 == 1 && past > 0) { // keys again and again: ties
        const int64_t different = pick(1, std::min<int64_t>(past, 6));
        const auto length = static_cast<size_t>(different * p.block.key_size);
        for (size_t i = length; i < static_cast<size_t>(past * p.block.key_size); i++) {
            p.k[i] = p.k[i - length];
        }
    }
    p.point();
    return p;
}

TEST(Rivals, AreWhatTheyAreStatedToBe) {
    std::mt19937 random(11);
    Team one(1);
    Team three(3);
    for (int round = 0; round < 400; round++) {
        const Problem p = random_problem(round, random);
        ASSERT_NO_FATAL_FAILURE(expect_all_rules(p, one)) << "round " << round;
        for (const auto & [name, rule] : rules) {
            ASSERT_EQ(rule(p.block, p.options, one).opened, rule(p.block, p.options, three).opened)
                << name << " with three threads, round " << round;
        }
    }
}

TEST(Rivals, KeepToTheirBudgets) {
    std::mt19937 random(12);
    Team team(3);
    for (const int64_t past : { 100, 333, 1000 }) {
        Problem p(40, 3, past, 20, 16, 1.0F, random);
        for (const double budget : { 0.01, 0.05, 0.125, 0.25, 0.5, 0.999, 1.0, 2.0 }) {
            p.options.budget = budget;
            const double wanted = std::min(1.0, budget) * static_cast<double>(past);
            for (const auto & [name, rule] : rules) {
                const auto read = static_cast<double>(rule(p.block, p.options, team).read());
                EXPECT_LE(std::abs(read - wanted), std::max(0.5, 0.02 * wanted)) << name << " at " << budget;
            }
        }
        p.options.budget = 1.0;
        for (const auto & [name, rule] : rules) {
            EXPECT_EQ(rule(p.block, p.options, team).read(), past) << name;
        }
    }
}

TEST(Rivals, ReadOneTokenOfAnyPastAndNothingOfNone) {
    std::mt19937 random(13);
    Team team(1);
    Problem p(3, 2, 9, 2, 5, 1.0F, random);
    p.options.budget = 0.001;
    Problem none(3, 2, 0, 2, 5, 1.0F, random);
    for (const auto & [name, rule] : rules) {
        EXPECT_EQ(rule(p.block, p.options, team).read(), 1) << name;
        EXPECT_EQ(rule(none.block, none.options, team).read(), 0) << name;
        EXPECT_EQ(rule(none.block, none.options, team).index_bits, 0.0) << name;
    }
}

TEST(Random, DrawsEachTokenAsOftenAndByTheSeedAlone) {
    std::mt19937 random(14);
    Team team(1);
    Problem p(2, 1, 40, 0, 4, 1.0F, random);
    std::vector<int> drawn(40, 0);
    for (uint64_t seed = 0; seed < 2000; seed++) {
        p.block.seed = seed;
        const auto opened = select_random(p.block, p.options, team).opened;
        ASSERT_EQ(opened, select_random(p.block, p.options, team).opened);
        for (const int32_t token : opened) {
            drawn[static_cast<size_t>(token)]++;
        }
    }
    for (const int times : drawn) { // 500 expected, with a deviation of 19
        EXPECT_NEAR(times, 500, 100);
    }
}

TEST(PlainShares, OfPastAndRecentSumToOne) {
    std::mt19937 random(15);
    for (int round = 0; round < 100; round++) {
        const Problem p = random_problem(round, random);
        for (int64_t head = 0; head < p.block.group; head++) {
            for (int64_t query = 0; query < p.block.queries; query++) {
                const int64_t row = head * p.block.queries + query;
                const auto past = past_shares_plain(p.block, p.k.data(), { &row, 1 }, Rank::sum);
                double sum = 0.0;
                for (const float share : past) {
                    sum += share;
                }
                for (const double share : Problem::softmax(p.recent_logits(head, query), p.past_logits(p.q, row))) {
                    sum += share;
                }
                ASSERT_NEAR(sum, 1.0, 1e-5) << "round " << round;
            }
        }
    }
}

TEST(PlainShares, AreTheDefinitionsOverTheRowsListed) {
    std::mt19937 random(16);
    for (int round = 0; round < 200; round++) {
        Problem p = random_problem(round, random);
        const Doubles wanted = oracle_scores(p);
        const auto shares = past_shares_plain(p.block, p.k.data(), {}, p.options.rank);
        ASSERT_EQ(shares.size(), wanted.size());
        for (size_t i = 0; i < shares.size(); i++) {
            ASSERT_NEAR(shares[i], wanted[i], 1e-5 * (1.0 + wanted[i])) << "round " << round;
        }
        const int64_t last = p.block.group * p.block.queries - 1;
        const std::vector<int64_t> rows = { last, 0 };
        const auto of_two = past_shares_plain(p.block, p.k.data(), rows, p.options.rank);
        const Doubles first = p.true_shares(0, 0);
        const Doubles other = p.true_shares(p.block.group - 1, p.block.queries - 1);
        for (size_t i = 0; i < of_two.size(); i++) {
            ASSERT_NEAR(of_two[i], joined(first[i], other[i], p.options.rank), 1e-5) << "round " << round;
        }
    }
}

TEST(PlainShares, TakeThePastsKeysAsTheyAreGiven) {
    std::mt19937 random(17);
    Problem p(4, 2, 12, 3, 6, 1.0F, random);
    const std::vector<float> keys = Problem::normals(72, 1.0F, random);
    const auto given = past_shares_plain(p.block, keys.data(), {}, Rank::sum);
    std::copy(keys.begin(), keys.end(), p.k.begin());
    EXPECT_EQ(given, past_shares_plain(p.block, p.k.data(), {}, Rank::sum));
}

TEST(Ranking, OfEqualScoresTheEarliest) {
    const std::vector<float> scores = { 1, 3, 2, 3, 3, 0, 2 };
    EXPECT_EQ(best_tokens(scores, 2), (std::vector<int32_t>{ 1, 3 }));
    EXPECT_EQ(best_tokens(scores, 4), (std::vector<int32_t>{ 1, 2, 3, 4 }));
    EXPECT_EQ(best_tokens(scores, 0), std::vector<int32_t>());
    EXPECT_EQ(best_tokens(scores, 99).size(), scores.size());
}

TEST(Ranking, BlocksAreWholeButTheLastToBeTaken) {
    const std::vector<float> scores = { 1, 2, 2, 3 }; // of 4, 4, 4 and 1 tokens
    EXPECT_EQ(best_blocks(scores, 13, 4, 7), (std::vector<int32_t>{ 4, 5, 6, 7, 8, 9, 12 }));
    EXPECT_EQ(best_blocks(scores, 13, 4, 1), (std::vector<int32_t>{ 12 }));
    EXPECT_EQ(best_blocks(scores, 13, 4, 99).size(), 13U);
    EXPECT_EQ(best_blocks(scores, 13, 4, 0), std::vector<int32_t>());
    EXPECT_EQ(best_blocks({}, 0, 4, 3), std::vector<int32_t>());
}

TEST(Ranking, ANumberComesBeforeNone) {
    const std::vector<float> scores = { NAN, -INFINITY, NAN, 1, INFINITY };
    EXPECT_EQ(best_tokens(scores, 2), (std::vector<int32_t>{ 3, 4 }));
    EXPECT_EQ(best_tokens(scores, 5).size(), 5U);
}

} // namespace
} // namespace cascade
