// Proposition 3 of the first paper: what a layer may do to similar tokens. Its inequalities hold; its conclusion about
// the whole set doesn't. All distances here in double.
#include "cascade/cover.h"
#include "support/token_rows.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace cascade;
using Vector = std::vector<double>;

namespace {

double norm(const Vector & x) {
    double sum = 0.0;
    for (const double value : x) {
        sum += value * value;
    }
    return std::sqrt(sum);
}

Vector combined(const Vector & a, double scale, const Vector & b) {
    Vector result = a;
    for (size_t k = 0; k < a.size(); k++) {
        result[k] += scale * b[k];
    }
    return result;
}

double distance(const Vector & a, const Vector & b) { return norm(combined(a, -1.0, b)); }

Vector unit(const Vector & x) {
    Vector result = x;
    const double length = norm(x);
    for (double & value : result) {
        value /= length;
    }
    return result;
}

class Source {
  public:
    explicit Source(uint64_t seed) : random(seed) {}

    double number() { return normal(random); }
    Vector vector(size_t size, double scale) {
        Vector result(size);
        for (double & value : result) {
            value = scale * number();
        }
        return result;
    }

  private:
    std::mt19937_64 random;
    std::normal_distribution<double> normal;
};

// x + B tanh(x): a block without attention, for which 1 + |B|_F is a Lipschitz constant.
struct Block {
    std::vector<Vector> rows;

    Block(size_t size, double scale, Source & source) {
        for (size_t k = 0; k < size; k++) {
            rows.push_back(source.vector(size, scale));
        }
    }
    Vector operator()(const Vector & x) const {
        Vector result = x;
        for (size_t i = 0; i < rows.size(); i++) {
            for (size_t k = 0; k < x.size(); k++) {
                result[i] += rows[i][k] * std::tanh(x[k]);
            }
        }
        return result;
    }
    double lipschitz() const {
        double sum = 0.0;
        for (const Vector & row : rows) {
            sum += norm(row) * norm(row);
        }
        return 1.0 + std::sqrt(sum);
    }
};

// The printed proof gives (5) with a factor of 2, the printed (5) has none, and that is true:
// |a - b|^2 = (|a| - |b|)^2 + |a| |b| |a/|a| - b/|b||^2, so the distance of unit rows is at most |a - b| / sqrt(|a|
// |b|), which is at most |a - b| / min. (Dunkl and Williams: even 2 |a - b| / (|a| + |b|).)
TEST(Proposition3, TheInequalitiesHoldWithoutTheFactorTwo) {
    Source source(1);
    double tightest = 0.0;
    for (int i = 0; i < 20000; i++) {
        const auto size = static_cast<size_t>(1 + (i % 6));
        const Vector a = source.vector(size, std::exp(source.number()));
        const Vector b = i % 2 == 0 ? source.vector(size, std::exp(source.number()))
                                    : combined(a, 0.1, source.vector(size, norm(a))); // near neighbours
        const double apart = distance(a, b);
        const double measured = distance(unit(a), unit(b)) * (1.0 - 1e-12);
        EXPECT_LE(measured, (2.0 * apart / (norm(a) + norm(b))) + 1e-14);
        EXPECT_LE(measured, (apart / std::sqrt(norm(a) * norm(b))) + 1e-14);
        EXPECT_LE(measured, (apart / std::min(norm(a), norm(b))) + 1e-14);
        tightest = std::max(tightest, measured * std::min(norm(a), norm(b)) / apart);
    }
    EXPECT_GT(tightest, 0.999); // 1 is the best constant
}

TEST(Proposition3, ASimilarPairStaysSimilarUnderAMapOfEachTokenAlone) {
    Source source(2);
    constexpr double tau = 0.3;
    int tested = 0;
    for (int i = 0; i < 20000; i++) {
        const auto size = static_cast<size_t>(2 + (i % 5));
        const Block block(size, 0.1, source);
        const Vector s = source.vector(size, 2.0);
        const Vector t = combined(s, 0.1, source.vector(size, 2.0));
        const Vector next_s = block(s);
        const Vector next_t = block(t);
        const double bound = block.lipschitz() * distance(s, t);
        ASSERT_LE(distance(next_s, next_t), bound); // (4)
        const double smaller = std::min(norm(next_s), norm(next_t));
        ASSERT_LE(distance(unit(next_s), unit(next_t)), (bound / smaller) + 1e-14); // (5)
        if (bound / smaller < std::sqrt(2.0) * tau) {
            const double apart = distance(unit(next_s), unit(next_t));
            ASSERT_GT(1.0 - (apart * apart / 2.0), 1.0 - (tau * tau)); // G
            tested++;
        }
    }
    EXPECT_GT(tested, 5000);
}

// "… and the representative set is preserved": no. A Lipschitz constant bounds from above only, so other pairs may
// become similar. The map halves the second value and more; its constant is 1, and (0, 2), the one similar pair, stays
// similar.
TEST(Proposition3, TheSetIsNotPreserved) {
    Team team(1);
    const std::vector<float> below = { 1, 0, 1, 1, 1, 0.1F };
    const std::vector<float> above = { 1, 0, 1, 0.3F, 1, 0.03F };
    EXPECT_EQ(threshold_cover({ below.data(), 3, 2, 2 }, {}, team).representatives, (std::vector<int32_t>{ 0, 1 }));
    EXPECT_EQ(threshold_cover({ above.data(), 3, 2, 2 }, {}, team).representatives, (std::vector<int32_t>{ 0 }));
}

// Rows that change by at most `change` of their length, and pairs that aren't near the threshold.
class ChangedRows {
  public:
    ChangedRows(int64_t tokens, size_t size, double change, uint64_t seed) : row_size(size) {
        Source source(seed);
        for (int64_t t = 0; t < tokens; t++) {
            const Vector fresh = source.vector(size, 1.0);
            const Vector row =
                t % 3 == 0 ? fresh : combined(before[static_cast<size_t>(t / 2)], t % 3 == 1 ? 0.05 : 0.2, fresh);
            const double length = std::fabs(std::tanh(source.number())) * change * norm(row);
            before.push_back(row);
            after.push_back(combined(row, length, unit(source.vector(size, 1.0))));
        }
    }

    double smallest_margin(double tau) const {
        double margin = 2.0;
        std::vector<Vector> units;
        for (const Vector & row : before) {
            units.push_back(unit(row));
        }
        for (size_t a = 0; a < units.size(); a++) {
            for (size_t b = 0; b < a; b++) {
                const double apart = std::min(distance(units[a], units[b]), norm(combined(units[a], 1.0, units[b])));
                margin = std::min(margin, std::fabs(apart - (std::sqrt(2.0) * tau)));
            }
        }
        return margin;
    }

    Cover cover(bool changed, bool leader, Team & team) const {
        std::vector<float> data;
        for (const Vector & row : changed ? after : before) {
            data.insert(data.end(), row.begin(), row.end());
        }
        const auto size = static_cast<int64_t>(row_size);
        const TokenRows rows = { data.data(), static_cast<int64_t>(before.size()), size, size };
        return leader ? leader_cover(rows, {}, team) : threshold_cover(rows, {}, team);
    }

  private:
    size_t row_size;
    std::vector<Vector> before;
    std::vector<Vector> after;
};

// What holds, for any layer, attention included: where every row changes by at most c of its length, unit rows move by
// at most e = 2c / (2 - c) (Dunkl and Williams), and pairs by 2e. So where no pair's distance is within 2e of sqrt(2)
// tau, every pair stays on its side of the threshold, and all choices stay as they are.
TEST(Proposition3, TheSetIsPreservedWhereNoPairIsNearTheThreshold) {
    Team team(1);
    constexpr double change = 0.02;
    constexpr double pairs_move = 2.0 * (2.0 * change / (2.0 - change));
    int tested = 0;
    int changed_otherwise = 0;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        const ChangedRows rows(3 + static_cast<int64_t>(seed % 8), 2 + (seed % 6), change, seed);
        const bool all_clear = rows.smallest_margin(0.3) > pairs_move + 1e-5; // a little for rounding to float
        for (const bool leader : { false, true }) {
            const bool same =
                rows.cover(false, leader, team).representatives == rows.cover(true, leader, team).representatives;
            if (all_clear) {
                EXPECT_TRUE(same) << seed;
                tested++;
            } else {
                changed_otherwise += same ? 0 : 1;
            }
        }
    }
    EXPECT_GT(tested, 500);
    EXPECT_GT(changed_otherwise, 10); // the condition isn't idle
}

} // namespace
