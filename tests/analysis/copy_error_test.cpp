// The paper's attention on representatives against itself, written out in double: r queries, r keys, outputs copied.
#include "analysis/copy_error.h"

#include "analysis/figures.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

namespace cascade::analysis {
namespace {

constexpr float hidden = -std::numeric_limits<float>::infinity();

struct Form {
    const char * name;
    int64_t heads = 4;
    int64_t kv_heads = 4;
    bool mask = true;
    bool head_masks = false; // a mask for each head
    float max_bias = 0.0F;
    float soft_cap = 0.0F;
    bool sinks = false;
};

void PrintTo(const Form & form, std::ostream * out) { *out << form.name; }

void copy_floats(const void * stored, float * values, int64_t n) {
    std::memcpy(values, stored, static_cast<size_t>(n) * sizeof(float));
}

// As ALiBi's paper has it: a geometric series, and every second member of a finer one where it doesn't suffice.
double plain_slope(double max_bias, int64_t heads, int64_t head) {
    if (max_bias == 0.0) {
        return 1.0;
    }
    int64_t power = 1;
    while (power * 2 <= heads) {
        power *= 2;
    }
    const auto p = static_cast<double>(power);
    const auto h = static_cast<double>(head);
    return head < power ? std::pow(2.0, -max_bias * (h + 1.0) / p)
                        : std::pow(2.0, -max_bias / 2.0 * ((2.0 * (h - p)) + 1.0) / p);
}

// One attention of a layer, its arrays in plain order: token, head, value.
class Layer {
  public:
    static constexpr int64_t tokens = 23;
    static constexpr int64_t key_size = 6;
    static constexpr int64_t value_size = 5;
    static constexpr float scale = 0.7F;

    explicit Layer(const Form & of_form) : form(of_form) {
        std::mt19937 random(5);
        std::normal_distribution<float> normal;
        const auto fill = [&](std::vector<float> & values, int64_t count) {
            values.resize(static_cast<size_t>(count));
            std::generate(values.begin(), values.end(), [&] { return normal(random); });
        };
        fill(query, tokens * form.heads * key_size);
        fill(key, tokens * form.kv_heads * key_size);
        fill(value, tokens * form.kv_heads * value_size);
        fill(sinks, form.heads);
        fill(mask, (form.head_masks ? form.heads : 1) * tokens * tokens);
        for (size_t i = 0; i < mask.size(); i++) { // causal, with some bias on what is seen
            const auto from = static_cast<int64_t>(i) / tokens % tokens;
            mask[i] = static_cast<int64_t>(i) % tokens > from ? hidden : -std::fabs(mask[i]);
        }
        bind();
        const auto everyone = all();
        for (int32_t token = 0; token < tokens; token++) {
            const auto row = attend(token, everyone);
            std::copy(row.begin(), row.end(), std::back_inserter(out));
        }
        attention.out = reinterpret_cast<char *>(out.data());
    }
    Layer(const Layer &) = delete; // `attention` points into it
    Layer & operator=(const Layer &) = delete;

    static std::vector<int32_t> all() {
        std::vector<int32_t> list(tokens);
        std::iota(list.begin(), list.end(), 0);
        return list;
    }

    // All heads of one query against the keys of some tokens.
    std::vector<double> attend(int32_t token, const std::vector<int32_t> & keys) const {
        std::vector<double> result;
        for (int64_t head = 0; head < form.heads; head++) {
            const auto weights = softmax_of(token, head, keys);
            for (int64_t d = 0; d < value_size; d++) {
                double sum = 0.0;
                for (size_t i = 0; i < keys.size(); i++) {
                    sum += weights[i] * at(value, keys[i], kv_head(head), d, form.kv_heads, value_size);
                }
                result.push_back(sum);
            }
        }
        return result;
    }

    double plain_error(const Cover & cover, const std::vector<int32_t> & sample) const {
        double difference = 0.0;
        double norm = 0.0;
        for (const int32_t token : sample) {
            const auto copied = attend(cover.assigned[static_cast<size_t>(token)], cover.representatives);
            const auto own = attend(token, all());
            for (size_t i = 0; i < own.size(); i++) {
                difference += (copied[i] - own[i]) * (copied[i] - own[i]);
                norm += own[i] * own[i];
            }
        }
        return std::sqrt(difference / norm);
    }

    Attention attention;

  private:
    static float at(const std::vector<float> & values, int64_t token, int64_t head, int64_t i, int64_t heads,
                    int64_t size) {
        return values[static_cast<size_t>((((token * heads) + head) * size) + i)];
    }

    int64_t kv_head(int64_t head) const { return head / (form.heads / form.kv_heads); }

    std::vector<double> softmax_of(int32_t token, int64_t head, const std::vector<int32_t> & keys) const {
        std::vector<double> weights;
        for (const int32_t other : keys) {
            double logit = 0.0;
            for (int64_t i = 0; i < key_size; i++) {
                logit += static_cast<double>(at(query, token, head, i, form.heads, key_size)) *
                         at(key, other, kv_head(head), i, form.kv_heads, key_size);
            }
            logit *= scale;
            logit = form.soft_cap > 0.0F ? form.soft_cap * std::tanh(logit) : logit;
            if (form.mask) {
                const int64_t plane = form.head_masks ? head : 0;
                logit += plain_slope(form.max_bias, form.heads, head) *
                         mask[static_cast<size_t>((((plane * tokens) + token) * tokens) + other)];
            }
            weights.push_back(std::exp(logit));
        }
        const double sink = form.sinks ? std::exp(static_cast<double>(sinks[static_cast<size_t>(head)])) : 0.0;
        const double sum = std::accumulate(weights.begin(), weights.end(), sink);
        for (double & weight : weights) {
            weight /= sum;
        }
        return weights;
    }

    static Rows rows(const std::vector<float> & values, int64_t heads, int64_t size) {
        Rows result;
        result.base = reinterpret_cast<const char *>(values.data());
        result.head_stride = static_cast<size_t>(size) * sizeof(float);
        result.row_stride = static_cast<size_t>(heads) * result.head_stride;
        result.to_float = copy_floats;
        return result;
    }

    void bind() {
        attention.queries = attention.tokens = tokens;
        attention.heads = form.heads;
        attention.kv_heads = form.kv_heads;
        attention.key_size = key_size;
        attention.value_size = value_size;
        attention.query = rows(query, form.heads, key_size);
        attention.key = rows(key, form.kv_heads, key_size);
        attention.value = rows(value, form.kv_heads, value_size);
        if (form.mask) {
            attention.mask = rows(mask, 1, tokens);
            attention.mask.head_stride = tokens * attention.mask.row_stride;
            attention.mask_heads = form.head_masks ? form.heads : 1;
        }
        attention.sinks = form.sinks ? sinks.data() : nullptr;
        attention.pre_scale = scale;
        attention.soft_cap = form.soft_cap;
        attention.max_bias = form.max_bias;
        attention.out_head_stride = value_size * sizeof(float);
        attention.out_query_stride = static_cast<size_t>(form.heads) * attention.out_head_stride;
    }

    Form form;
    std::vector<float> query, key, value, mask, sinks, out;
};

// Every third token, and each of the others by the one before it.
Cover sparse_cover() {
    Cover cover;
    for (int32_t token = 0; token < Layer::tokens; token++) {
        if (token % 3 == 0) {
            cover.representatives.push_back(token);
        }
        cover.assigned.push_back(cover.representatives.back());
        cover.similarity.push_back(1.0F);
    }
    return cover;
}

Cover full_cover() {
    Cover cover;
    cover.representatives = cover.assigned = Layer::all();
    cover.similarity.assign(cover.assigned.size(), 1.0F);
    return cover;
}

class EveryForm : public testing::TestWithParam<Form> {
  protected:
    Layer layer{ GetParam() };
    Team team{ 2 };
};

TEST_P(EveryForm, IsThePlainError) {
    for (const int64_t count : { int64_t{ 1 }, int64_t{ 5 }, Layer::tokens }) {
        const auto sample = spread_sample(Layer::tokens, count);
        const double expected = layer.plain_error(sparse_cover(), sample);
        EXPECT_GT(expected, 0.01) << "a case that shows nothing";
        EXPECT_NEAR(copy_error(layer.attention, sparse_cover(), sample, team), expected, 1e-5 * (1.0 + expected));
    }
}

TEST_P(EveryForm, NothingIsLostWhereEveryTokenSpeaksForItself) {
    EXPECT_LT(copy_error(layer.attention, full_cover(), Layer::all(), team), 1e-6);
}

TEST_P(EveryForm, ThreadsDoNotMatter) {
    Team one(1);
    EXPECT_EQ(copy_error(layer.attention, sparse_cover(), Layer::all(), team),
              copy_error(layer.attention, sparse_cover(), Layer::all(), one));
}

INSTANTIATE_TEST_SUITE_P(
    CopyError, EveryForm,
    testing::Values(Form{ .name = "causal" }, Form{ .name = "encoder", .mask = false },
                    Form{ .name = "grouped", .heads = 6, .kv_heads = 2 }, Form{ .name = "alibi", .max_bias = 8.0F },
                    Form{ .name = "alibi_of_six_heads", .heads = 6, .kv_heads = 3, .max_bias = 8.0F },
                    Form{ .name = "masks_by_head", .head_masks = true }, Form{ .name = "soft_cap", .soft_cap = 1.5F },
                    Form{ .name = "sinks", .heads = 4, .kv_heads = 1, .sinks = true }),
    [](const auto & given) { return given.param.name; });

TEST(CopyError, IsNotMeasuredWhereATokenHasNoRepresentative) {
    const Layer layer(Form{ .name = "causal" });
    Team team(1);
    Cover cover = sparse_cover();
    cover.assigned[7] = -1;
    EXPECT_TRUE(std::isnan(copy_error(layer.attention, cover, std::vector<int32_t>{ 2, 7 }, team)));
    EXPECT_FALSE(std::isnan(copy_error(layer.attention, cover, std::vector<int32_t>{ 2, 8 }, team)));
}

TEST(SpreadSample, IsEvenlySpread) {
    EXPECT_EQ(spread_sample(10, 4), (std::vector<int32_t>{ 1, 3, 6, 8 }));
    EXPECT_EQ(spread_sample(5, 1), (std::vector<int32_t>{ 2 }));
    EXPECT_EQ(spread_sample(3, 64), (std::vector<int32_t>{ 0, 1, 2 }));
    EXPECT_TRUE(spread_sample(10, 0).empty());
    EXPECT_TRUE(spread_sample(0, 4).empty());
    for (const int64_t tokens : { 1, 7, 64, 511 }) {
        for (int64_t count = 1; count <= tokens; count += 1 + (tokens / 9)) {
            const auto sample = spread_sample(tokens, count);
            ASSERT_EQ(static_cast<int64_t>(sample.size()), count);
            EXPECT_GE(sample.front(), 0);
            EXPECT_LT(sample.back(), tokens);
            for (size_t i = 1; i < sample.size(); i++) {
                const int64_t step = sample[i] - sample[i - 1];
                EXPECT_GE(step, tokens / count);
                EXPECT_LE(step, (tokens / count) + 1);
            }
        }
    }
}

} // namespace
} // namespace cascade::analysis
