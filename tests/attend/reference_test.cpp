// The oracle against the definition, written out once more in double and without any cleverness.
#include "cascade/attention.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>

namespace cascade {
namespace {

constexpr float hidden = -std::numeric_limits<float>::infinity();

void copy_floats(const void * stored, float * values, int64_t n) {
    std::memcpy(values, stored, static_cast<size_t>(n) * sizeof(float));
}

struct Shape {
    int64_t queries = 1, tokens = 1, heads = 1, kv_heads = 1, streams = 1, key_size = 1, value_size = 1;
    bool transposed_values = false;
};

// Owns the arrays of one attention op.
struct Problem {
    Attention a;
    std::vector<float> q, k, v, mask, sinks, out;

    Problem(const Shape & s, std::mt19937 & random) {
        std::normal_distribution<float> normal;
        const auto fill = [&](std::vector<float> & x, int64_t n) {
            x.resize(static_cast<size_t>(n));
            for (float & value : x) {
                value = normal(random);
            }
        };
        fill(q, s.streams * s.heads * s.queries * s.key_size);
        fill(k, s.streams * s.kv_heads * s.tokens * s.key_size);
        fill(v, s.streams * s.kv_heads * s.tokens * s.value_size);
        fill(mask, s.streams * s.queries * s.tokens);
        fill(sinks, s.heads);
        out.assign(static_cast<size_t>(s.streams * s.heads * s.queries * s.value_size), 99.0F);
        a.queries = s.queries, a.tokens = s.tokens, a.heads = s.heads, a.kv_heads = s.kv_heads;
        a.streams = s.streams, a.key_size = s.key_size, a.value_size = s.value_size;
        a.query = rows(q, s.key_size, s.queries, s.heads);
        a.key = rows(k, s.key_size, s.tokens, s.kv_heads);
        a.value = rows(v, s.value_size, s.tokens, s.kv_heads);
        if (s.transposed_values) {
            a.value.row_stride = sizeof(float);
            a.value.value_stride = static_cast<size_t>(s.tokens) * sizeof(float);
        }
        a.mask = rows(mask, s.tokens, s.queries, 1);
        a.mask_streams = s.streams;
        a.pre_scale = 0.3F;
        a.out = reinterpret_cast<char *>(out.data());
        a.out_query_stride = static_cast<size_t>(s.value_size) * sizeof(float);
        a.out_head_stride = static_cast<size_t>(s.queries) * a.out_query_stride;
        a.out_stream_stride = static_cast<size_t>(s.heads) * a.out_head_stride;
    }

    static Rows rows(const std::vector<float> & x, int64_t values, int64_t count, int64_t heads) {
        Rows r;
        r.base = reinterpret_cast<const char *>(x.data());
        r.row_stride = static_cast<size_t>(values) * sizeof(float);
        r.head_stride = static_cast<size_t>(count) * r.row_stride;
        r.stream_stride = static_cast<size_t>(heads) * r.head_stride;
        r.to_float = copy_floats;
        return r;
    }

    void hide(std::mt19937 & random, double share) {
        std::bernoulli_distribution coin(share);
        for (float & m : mask) {
            m = coin(random) ? hidden : m;
        }
    }

    void run(int parts) {
        for (int part = 0; part < parts; part++) {
            AttentionScratch scratch;
            attend_reference(a, part, parts, scratch);
        }
    }

    float at(const Rows & r, int64_t row, int64_t head, int64_t stream, int64_t i) const {
        std::vector<float> values(static_cast<size_t>(std::max(a.tokens, std::max(a.key_size, a.value_size))));
        const int64_t n = &r == &a.mask ? a.tokens : (&r == &a.value ? a.value_size : a.key_size);
        r.read(row, head, stream, n, values.data());
        return values[static_cast<size_t>(i)];
    }

    // One output value by the definition.
    double expected(int64_t query, int64_t head, int64_t stream, int64_t i) const {
        const int64_t kv = head / (a.heads / a.kv_heads);
        double total = 0.0;
        double sum = 0.0;
        for (int64_t t = 0; t < a.tokens; t++) {
            const double m = a.mask.base != nullptr ? at(a.mask, query, 0, stream, t) : 0.0;
            if (std::isinf(m)) {
                continue;
            }
            double x = 0.0;
            for (int64_t d = 0; d < a.key_size; d++) {
                x += static_cast<double>(at(a.query, query, head, stream, d)) * at(a.key, t, kv, stream, d);
            }
            x *= a.pre_scale;
            x = a.soft_cap != 0.0F ? a.soft_cap * std::tanh(x) : x;
            x = a.post_scale * x + alibi_slope(a.max_bias, a.heads, head) * m;
            total += std::exp(x);
            sum += std::exp(x) * at(a.value, t, kv, stream, i);
        }
        total += a.sinks != nullptr ? std::exp(a.sinks[head]) : 0.0;
        return total == 0.0 ? 0.0 : sum / total;
    }

    void check() const {
        for (int64_t s = 0; s < a.streams; s++) {
            for (int64_t h = 0; h < a.heads; h++) {
                for (int64_t q_row = 0; q_row < a.queries; q_row++) {
                    for (int64_t i = 0; i < a.value_size; i++) {
                        const auto at_out =
                            static_cast<size_t>(((s * a.heads + h) * a.queries + q_row) * a.value_size + i);
                        ASSERT_NEAR(out[at_out], expected(q_row, h, s, i), 2e-5) << "query " << q_row << " head " << h;
                    }
                }
            }
        }
    }
};

TEST(Reference, MatchesTheDefinitionOverRandomShapes) {
    std::mt19937 random(7);
    const auto pick = [&](int64_t low, int64_t high) {
        return std::uniform_int_distribution<int64_t>(low, high)(random);
    };
    for (int round = 0; round < 200; round++) {
        Shape shape;
        shape.kv_heads = pick(1, 3);
        shape.heads = shape.kv_heads * pick(1, 3);
        shape.queries = pick(1, 5), shape.tokens = pick(1, 20), shape.streams = pick(1, 2);
        shape.key_size = pick(1, 40), shape.value_size = pick(1, 40);
        shape.transposed_values = round % 3 == 0;
        Problem problem(shape, random);
        problem.hide(random, 0.1 * (round % 11));
        problem.a.max_bias = round % 4 == 1 ? 8.0F : 0.0F;
        problem.a.soft_cap = round % 5 == 2 ? 1.5F : 0.0F;
        problem.a.post_scale = round % 7 == 3 ? 0.7F : 1.0F;
        problem.a.sinks = round % 2 == 1 ? problem.sinks.data() : nullptr;
        problem.a.mask.base = round % 6 == 5 && problem.a.max_bias == 0.0F ? nullptr : problem.a.mask.base;
        problem.run(1 + round % 4);
        ASSERT_NO_FATAL_FAILURE(problem.check()) << "round " << round;
    }
}

TEST(Reference, DoesNotDependOnTheNumberOfParts) {
    std::mt19937 random(3);
    Shape shape;
    shape.queries = 7, shape.tokens = 33, shape.heads = 6, shape.kv_heads = 2, shape.key_size = shape.value_size = 24;
    Problem problem(shape, random);
    problem.hide(random, 0.3);
    problem.run(1);
    const auto one = problem.out;
    for (const int parts : { 2, 3, 4, 64 }) {
        std::fill(problem.out.begin(), problem.out.end(), 99.0F);
        problem.run(parts);
        EXPECT_EQ(one, problem.out) << parts << " parts";
    }
}

TEST(Reference, AQueryThatSeesNothingGetsZeros) {
    std::mt19937 random(4);
    Problem problem({ 2, 5, 1, 1, 1, 8, 8, false }, random);
    problem.hide(random, 1.0);
    problem.run(1);
    EXPECT_EQ(problem.out, std::vector<float>(problem.out.size(), 0.0F));
}

TEST(Alibi, SlopesOfTwelveHeadsAreThePapersSequence) {
    for (int64_t head = 0; head < 8; head++) {
        EXPECT_FLOAT_EQ(alibi_slope(8.0F, 12, head), std::pow(2.0F, -static_cast<float>(head + 1)));
    }
    for (int64_t head = 8; head < 12; head++) {
        EXPECT_FLOAT_EQ(alibi_slope(8.0F, 12, head), std::pow(2.0F, -0.5F * static_cast<float>(2 * (head - 8) + 1)));
    }
    EXPECT_EQ(alibi_slope(0.0F, 12, 3), 1.0F);
}

} // namespace
} // namespace cascade
