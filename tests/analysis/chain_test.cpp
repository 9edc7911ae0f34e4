// A chain of layers against the same chain written plainly: every method's covers from the blackboard versions, every
// figure from sets.
#include "analysis/chain.h"
#include "cover/plain.h"
#include "support/token_rows.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <set>

namespace cascade::analysis {
namespace {

using test::Kind;
using test::Shape;
using Set = std::vector<int32_t>;

constexpr uint64_t seed = 77;

std::vector<Method> all_methods() {
    std::vector<Method> methods;
    methods.reserve(method_count);
    for (size_t i = 0; i < method_count; i++) {
        methods.push_back(static_cast<Method>(i));
    }
    return methods;
}

// Some layers of one text: each adds something to every token.
class Layers {
  public:
    Layers(const Shape & of_shape, int count) : shape(of_shape) {
        const test::MadeRows made(shape, 3); // 3: packed rows
        const TokenRows first = made.rows();
        data.emplace_back(first.data, first.data + (shape.tokens * shape.size));
        std::mt19937_64 random(9);
        std::normal_distribution<float> normal;
        for (int i = 1; i < count; i++) {
            std::vector<float> next = data.back();
            for (float & value : next) {
                value += 0.15F * std::fabs(value) * normal(random);
            }
            data.push_back(std::move(next));
        }
    }

    size_t count() const { return data.size(); }
    TokenRows rows(size_t layer) const { return { data[layer].data(), shape.tokens, shape.size, shape.size }; }

  private:
    Shape shape;
    std::vector<std::vector<float>> data;
};

struct Expected {
    Cover cover;
    double tau = 0.0;
};

// One method's covers, layer by layer, by the plain versions.
class PlainMethod {
  public:
    PlainMethod(Method a_method, const CoverOptions & some_options) : method(a_method), options(some_options) {
        tau = options.tau;
    }

    Expected next(const TokenRows & rows, const Set & first_independent, const Set & independent) {
        const plain::Gram gram(rows, options.sign);
        Cover chosen = choose(gram, first_independent, independent);
        turnover = turnover_to(chosen.representatives);
        cover = chosen;
        layer++;
        return { std::move(chosen), tau };
    }

  private:
    Cover choose(const plain::Gram & gram, const Set & first_independent, const Set & independent) {
        const float threshold = options.threshold();
        switch (method) {
        case Method::threshold:
            return plain::threshold_cover(gram, threshold);
        case Method::leader:
            return plain::leader_cover(gram, threshold);
        case Method::unvalidated:
            return plain::assign(gram, first_independent, Reach::anywhere);
        case Method::random:
            return plain::assign(
                gram, random_representatives(gram.tokens(), static_cast<int64_t>(independent.size()), seed + layer),
                Reach::anywhere);
        default:
            return choose_inherited(gram);
        }
    }

    Cover choose_inherited(const plain::Gram & gram) {
        if (layer == 0) {
            return method == Method::inherit ? plain::threshold_cover(gram, options.threshold())
                                             : plain::leader_cover(gram, options.threshold());
        }
        if (method == Method::adaptive && layer > 1) {
            tau = adapted_tau(tau, options.tau, turnover);
        }
        const InheritForm form = method == Method::inherit  ? InheritForm::printed
                                 : method == Method::causal ? InheritForm::causal
                                                            : InheritForm::linked;
        return plain::inherit_cover(gram, cover, form, CoverOptions{ tau, options.sign }.threshold()).cover;
    }

    double turnover_to(const Set & now) const {
        Set changed;
        const Set & before = cover.representatives;
        std::set_symmetric_difference(before.begin(), before.end(), now.begin(), now.end(),
                                      std::back_inserter(changed));
        return before.empty() ? 0.0 : static_cast<double>(changed.size()) / static_cast<double>(before.size());
    }

    Method method;
    CoverOptions options;
    double tau = 0.0;
    double turnover = 0.0;
    uint64_t layer = 0;
    Cover cover;
};

int64_t count_common(const Set & a, const Set & b) {
    const std::set<int32_t> in_a(a.begin(), a.end());
    return std::count_if(b.begin(), b.end(), [&](int32_t token) { return in_a.contains(token); });
}

double plain_jaccard(const Set & a, const Set & b) {
    std::set<int32_t> either(a.begin(), a.end());
    either.insert(b.begin(), b.end());
    return either.empty() ? 1.0 : static_cast<double>(count_common(a, b)) / static_cast<double>(either.size());
}

int64_t plain_uncovered(const TokenRows & rows, const Set & set, const CoverOptions & options) {
    const plain::Gram gram(rows, options.sign);
    int64_t uncovered = 0;
    for (int32_t token = 0; token < rows.tokens; token++) {
        const bool spoken_for = std::any_of(set.begin(), set.end(), [&](int32_t other) {
            return other == token || (other < token && gram(token, other) >= options.threshold());
        });
        uncovered += spoken_for ? 0 : 1;
    }
    return uncovered;
}

// As the paper counts; the leader's pairs are its own, the random control chooses nothing.
double plain_gram_entries(Method method, size_t layer, int64_t tokens, const Set & set, const Set & before) {
    const auto t = static_cast<double>(tokens);
    switch (method) {
    case Method::leader:
        return t * static_cast<double>(set.size());
    case Method::threshold:
        return t * t;
    case Method::unvalidated:
        return layer == 0 ? t * t : 0.0;
    default:
        return layer == 0 ? t * t : t * static_cast<double>(before.size());
    }
}

struct ChainCase {
    Shape shape;
    double tau;
    Sign sign;
};

void PrintTo(const ChainCase & one, std::ostream * out) {
    *out << one.shape << " tau " << one.tau << (one.sign == Sign::kept ? " signed" : "");
}

class EveryChain : public testing::TestWithParam<ChainCase> {
  protected:
    EveryChain()
        : layers(GetParam().shape, 5), options{ { GetParam().tau, GetParam().sign }, all_methods(), seed, true },
          chain("residual", options, team) {
        for (const Method method : all_methods()) {
            PlainMethod plain(method, options.cover);
            std::vector<Expected> covers;
            for (size_t layer = 0; layer < layers.count(); layer++) {
                const bool first = method == Method::threshold;
                covers.push_back(
                    plain.next(layers.rows(layer), first ? Set() : independent(0), first ? Set() : independent(layer)));
            }
            expected.push_back(std::move(covers));
        }
    }

    const Set & independent(size_t layer) const { return expected.front()[layer].cover.representatives; }
    const Expected & of(Method method, size_t layer) const { return expected[static_cast<size_t>(method)][layer]; }

    void add_all_layers() {
        for (size_t layer = 0; layer < layers.count(); layer++) {
            chain.add_layer(layers.rows(layer));
        }
    }

    Layers layers;
    Team team{ 2 };
    ChainOptions options;
    Chain chain;
    std::vector<std::vector<Expected>> expected; // by method and layer
};

TEST_P(EveryChain, CoversAreThePlainOnes) {
    for (size_t layer = 0; layer < layers.count(); layer++) {
        chain.add_layer(layers.rows(layer));
        for (const Method method : all_methods()) {
            SCOPED_TRACE(std::string(name_of(method)) + " in layer " + std::to_string(layer));
            const Cover * cover = chain.cover(method);
            ASSERT_NE(cover, nullptr);
            EXPECT_EQ(cover->representatives, of(method, layer).cover.representatives);
            EXPECT_EQ(cover->assigned, of(method, layer).cover.assigned);
            EXPECT_EQ(cover->similarity, of(method, layer).cover.similarity);
        }
    }
    for (const Series & series : chain.take_series()) {
        ASSERT_EQ(series.sets.size(), layers.count());
        for (size_t layer = 0; layer < layers.count(); layer++) {
            EXPECT_EQ(series.sets[layer], of(series.method, layer).cover.representatives) << name_of(series.method);
        }
    }
}

TEST_P(EveryChain, FiguresOfChangeAreThoseOfSets) {
    add_all_layers();
    for (const Series & series : chain.take_series()) {
        EXPECT_TRUE(std::isnan(series.layers[0][Figure::adds]));
        EXPECT_TRUE(std::isnan(series.layers[0][Figure::turnover]));
        EXPECT_TRUE(std::isnan(series.layers[0][Figure::jaccard_previous]));
        for (size_t layer = 1; layer < layers.count(); layer++) {
            SCOPED_TRACE(std::string(name_of(series.method)) + " in layer " + std::to_string(layer));
            const Set & before = series.sets[layer - 1];
            const Set & now = series.sets[layer];
            const auto adds = static_cast<double>(now.size()) - static_cast<double>(count_common(before, now));
            const auto removes = static_cast<double>(before.size()) - static_cast<double>(count_common(now, before));
            const Figures & figures = series.layers[layer];
            EXPECT_EQ(figures[Figure::adds], adds);
            EXPECT_EQ(figures[Figure::removes], removes);
            EXPECT_DOUBLE_EQ(figures[Figure::turnover],
                             before.empty() ? 0.0 : (adds + removes) / static_cast<double>(before.size()));
            EXPECT_DOUBLE_EQ(figures[Figure::jaccard_previous], plain_jaccard(before, now));
        }
    }
}

TEST_P(EveryChain, FiguresBesideTheIndependentChoice) {
    add_all_layers();
    for (const Series & series : chain.take_series()) {
        EXPECT_EQ(series.source, "residual");
        EXPECT_EQ(series.tau, options.cover.tau);
        for (size_t layer = 0; layer < layers.count(); layer++) {
            SCOPED_TRACE(std::string(name_of(series.method)) + " in layer " + std::to_string(layer));
            const Set & set = series.sets[layer];
            const Set & reference = independent(layer);
            const Figures & figures = series.layers[layer];
            const auto r = static_cast<double>(set.size());
            const auto reference_r = static_cast<double>(reference.size());
            EXPECT_EQ(figures[Figure::r], r);
            EXPECT_DOUBLE_EQ(figures[Figure::jaccard_independent], plain_jaccard(reference, set));
            EXPECT_DOUBLE_EQ(figures[Figure::growth], reference.empty() ? 1.0 : r / reference_r);
            EXPECT_EQ(figures[Figure::missed], reference_r - static_cast<double>(count_common(set, reference)));
            EXPECT_EQ(figures[Figure::uncovered],
                      static_cast<double>(plain_uncovered(layers.rows(layer), set, options.cover)));
        }
    }
}

TEST_P(EveryChain, GramEntriesAreThePapersCount) {
    add_all_layers();
    for (const Series & series : chain.take_series()) {
        for (size_t layer = 0; layer < layers.count(); layer++) {
            SCOPED_TRACE(std::string(name_of(series.method)) + " in layer " + std::to_string(layer));
            const double entries = series.layers[layer][Figure::gram_entries];
            if (series.method == Method::random) {
                EXPECT_TRUE(std::isnan(entries));
                continue;
            }
            const Set before = layer > 0 ? series.sets[layer - 1] : Set();
            EXPECT_EQ(entries,
                      plain_gram_entries(series.method, layer, GetParam().shape.tokens, series.sets[layer], before));
            EXPECT_GE(series.layers[layer][Figure::multiply_adds], 0.0);
            EXPECT_GE(series.layers[layer][Figure::seconds], 0.0);
        }
    }
}

TEST_P(EveryChain, OnlyTheAdaptiveTauMoves) {
    add_all_layers();
    for (const Series & series : chain.take_series()) {
        double tau = options.cover.tau;
        for (size_t layer = 0; layer < layers.count(); layer++) {
            if (series.method == Method::adaptive && layer > 1) {
                tau = adapted_tau(tau, options.cover.tau, series.layers[layer - 1][Figure::turnover]);
            }
            EXPECT_EQ(series.layers[layer][Figure::tau], tau) << name_of(series.method) << " in layer " << layer;
        }
    }
}

TEST_P(EveryChain, LayersResembleEachOtherBothWays) {
    add_all_layers();
    const LayerSimilarity similarity = chain.similarity();
    EXPECT_EQ(similarity.source, "residual");
    EXPECT_EQ(similarity.tau, options.cover.tau);
    ASSERT_EQ(similarity.jaccard.size(), layers.count());
    for (size_t a = 0; a < layers.count(); a++) {
        ASSERT_EQ(similarity.jaccard[a].size(), layers.count());
        EXPECT_EQ(similarity.jaccard[a][a], 1.0);
        for (size_t b = 0; b < layers.count(); b++) {
            EXPECT_EQ(similarity.jaccard[a][b], similarity.jaccard[b][a]);
            EXPECT_DOUBLE_EQ(similarity.jaccard[a][b], plain_jaccard(independent(a), independent(b)));
        }
    }
}

std::vector<ChainCase> chain_cases() {
    std::vector<ChainCase> cases;
    for (const Kind kind :
         { Kind::random, Kind::clusters, Kind::duplicates, Kind::chains, Kind::degenerate, Kind::same }) {
        cases.push_back({ { 48, 24, kind }, 0.30, Sign::ignored });
        cases.push_back({ { 29, 9, kind }, 0.60, Sign::kept });
    }
    cases.push_back({ { 1, 5, Kind::random }, 0.30, Sign::ignored });
    cases.push_back({ { 0, 5, Kind::random }, 0.30, Sign::ignored });
    return cases;
}

INSTANTIATE_TEST_SUITE_P(Chain, EveryChain, testing::ValuesIn(chain_cases()));

// At least one case must show what the others could hide: sets that change, and a tau that moves.
TEST(Chain, MadeLayersDoChange) {
    const Layers layers({ 70, 24, Kind::clusters }, 6);
    Team team(1);
    Chain chain("residual", { { 0.30, Sign::ignored }, all_methods(), seed, true }, team);
    for (size_t layer = 0; layer < layers.count(); layer++) {
        chain.add_layer(layers.rows(layer));
    }
    for (const Series & series : chain.take_series()) {
        if (series.method == Method::unvalidated) {
            EXPECT_EQ(series.sets.front(), series.sets.back());
        } else {
            EXPECT_NE(series.sets.front(), series.sets.back()) << name_of(series.method);
        }
        if (series.method == Method::adaptive) {
            EXPECT_NE(series.layers.back()[Figure::tau], series.layers.front()[Figure::tau]);
        }
    }
}

TEST(Chain, RunsWhatIsAskedForAndTheIndependentChoice) {
    const Layers layers({ 30, 8, Kind::clusters }, 2);
    Team team(1);
    Chain chain("key", { { 0.30, Sign::ignored }, { Method::linked }, seed, false }, team);
    EXPECT_EQ(chain.cover(Method::linked), nullptr) << "no layer yet";
    chain.add_layer(layers.rows(0));
    chain.set_copy_error(Method::linked, 0.25);
    chain.add_layer(layers.rows(1));
    EXPECT_NE(chain.cover(Method::threshold), nullptr);
    EXPECT_EQ(chain.cover(Method::leader), nullptr);
    const std::vector<Series> series = chain.take_series();
    ASSERT_EQ(series.size(), 2U);
    EXPECT_EQ(series[0].method, Method::threshold);
    EXPECT_EQ(series[1].method, Method::linked);
    EXPECT_TRUE(series[1].sets.empty()) << "sets weren't asked for";
    EXPECT_EQ(series[1].layers[0][Figure::copy_error], 0.25);
    EXPECT_TRUE(std::isnan(series[1].layers[1][Figure::copy_error]));
    EXPECT_TRUE(std::isnan(series[0].layers[0][Figure::copy_error]));
}

TEST(Chain, MethodsHaveNames) {
    for (const Method method : all_methods()) {
        EXPECT_EQ(method_named(name_of(method)), method);
    }
    EXPECT_FALSE(method_named("all"));
    EXPECT_FALSE(method_named(""));
}

} // namespace
} // namespace cascade::analysis
