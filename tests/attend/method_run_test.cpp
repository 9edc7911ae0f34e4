// A method over a text, block after block and layer after layer, against the reference and naive statements.
#include "attend/method_run.h"

#include "support/compare.h"
#include "support/made_text.h"

#include <cmath>
#include <gtest/gtest.h>
#include <map>

namespace cascade {
namespace {

using test::MadeText;
using test::TextShape;
using Outputs = std::vector<std::vector<float>>; // by layer, all tokens

constexpr float hidden = -std::numeric_limits<float>::infinity();
constexpr int64_t window = 9;
const std::vector<int64_t> lengths = { 16, 16, 3, 1, 12, 2 }; // of blocks: 50 tokens

const std::vector<std::string> select_methods = { "proportional", "refine", "joint",   "streaming", "snapkv",
                                                  "blocks",       "quest",  "sampled", "random",    "oracle" };

class Running : public testing::Test {
  protected:
    // Layers one after the other within a block, as a model has it.
    MethodRun run(const std::string & method, Outputs & outputs, int64_t exact_window = window) {
        MethodRun running(parse_method(method), text.shape.layers, exact_window, 1);
        outputs.assign(static_cast<size_t>(text.shape.layers), {});
        int64_t first = 0;
        for (const int64_t count : lengths) {
            for (int layer = 0; layer < text.shape.layers; layer++) {
                if (running.spec().wants_rows()) {
                    running.add_rows(layer, text.rows_of(layer, first, count));
                }
                std::vector<float> out;
                const Attention attention = text.block(layer, first, count, out);
                running.attend(layer, first, attention, true, team);
                auto & all = outputs[static_cast<size_t>(layer)];
                all.insert(all.end(), out.begin(), out.end());
            }
            first += count;
        }
        return running;
    }

    MadeText text{ TextShape{} };
    Team team{ 2 };
};

TEST_F(Running, ExactTouchesNothing) {
    for (const char * method : { "exact", "joint:eps=0", "joint:0.1:eps=0" }) {
        Outputs outputs;
        const MethodRun running = run(method, outputs);
        EXPECT_EQ(outputs, text.dense) << method;
        EXPECT_EQ(running.reads().past, 0.0);
        for (const LayerError & layer : running.layers()) {
            EXPECT_TRUE(layer.left_alone);
            EXPECT_EQ(layer.difference, 0.0);
        }
    }
}

TEST_F(Running, WhatIsInTheWindowIsTheEnginesToTheBit) {
    for (const std::string & method : select_methods) {
        Outputs outputs;
        const MethodRun running = run(method + ":0.1", outputs, 48);
        EXPECT_EQ(outputs, text.dense) << method;
        EXPECT_EQ(running.reads().past, 0.0);
        EXPECT_FALSE(running.layers().front().left_alone) << "it would have been read by the method";
        run(method + ":0.1:window=19", outputs, 0);
        const auto within = static_cast<std::ptrdiff_t>(16 * text.width());
        for (size_t layer = 0; layer < outputs.size(); layer++) {
            const auto & own = outputs[layer];
            EXPECT_TRUE(std::equal(own.begin(), own.begin() + within, text.dense[layer].begin())) << method;
            EXPECT_NE(own, text.dense[layer]) << method << ": its own window is shorter than the text";
        }
    }
}

TEST_F(Running, AllOfThePastIsDenseAttention) {
    for (const std::string & method : select_methods) {
        for (const int64_t own_window : { int64_t{ 0 }, window }) {
            Outputs outputs;
            const MethodRun running = run(method + ":1", outputs, own_window);
            for (size_t layer = 0; layer < outputs.size(); layer++) {
                EXPECT_LT(test::relative_error(text.dense[layer], outputs[layer]), 1e-5) << method;
            }
            EXPECT_EQ(running.reads().read, running.reads().past) << method;
        }
    }
}

// The same rule asked by hand: what of the text reaches it, block by block and head by head.
struct ByHand {
    MadeText & text;
    MethodSpec spec;
    Team & team;
    std::vector<double> taus = std::vector<double>(static_cast<size_t>(text.shape.layers), 0.5);
    Reads reads = {};

    static std::vector<float> head_rows(const std::vector<float> & of, int64_t first, int64_t count, int64_t heads,
                                        int64_t head, int64_t size) {
        std::vector<float> rows;
        for (int64_t token = first; token < first + count; token++) {
            const auto begin = of.begin() + (((token * heads) + head) * size);
            rows.insert(rows.end(), begin, begin + size);
        }
        return rows;
    }

    std::vector<float> group_queries(int layer, int64_t first, int64_t count, int64_t kv_head) const {
        const int64_t group = text.shape.heads / text.shape.kv_heads;
        std::vector<float> rows;
        for (int64_t head = kv_head * group; head < (kv_head + 1) * group; head++) {
            const auto own = head_rows(text.query[static_cast<size_t>(layer)], first, count, text.shape.heads, head,
                                       text.shape.key_size);
            rows.insert(rows.end(), own.begin(), own.end());
        }
        return rows;
    }

    // One KV head's part of the block's output, and what it read.
    std::vector<float> attend(int layer, int64_t first, int64_t count, int64_t before, int64_t kv_head,
                              const Cover & cover) {
        const TextShape & shape = text.shape;
        const auto at = static_cast<size_t>(layer);
        const auto queries = group_queries(layer, first, count, kv_head);
        const auto earlier = group_queries(layer, first - before, before, kv_head);
        const auto keys = head_rows(text.key[at], 0, first + count, shape.kv_heads, kv_head, shape.key_size);
        const auto values = head_rows(text.value[at], 0, first + count, shape.kv_heads, kv_head, shape.value_size);
        Block block;
        block.queries = count, block.group = shape.heads / shape.kv_heads, block.past = first - window;
        block.tokens = first + count, block.key_size = shape.key_size, block.value_size = shape.value_size;
        block.query = queries.data(), block.key = keys.data(), block.value = values.data();
        block.earlier_query = earlier.data(), block.earlier_queries = before;
        block.cover = &cover;
        block.logit.pre_scale = 0.5F;
        const Selection selection = spec.select(block, spec.options, team);
        const double row_bytes = 2.0 * static_cast<double>(shape.key_size + shape.value_size);
        const auto past = static_cast<double>(block.past);
        const auto read = static_cast<double>(selection.read());
        reads.past += past;
        reads.read += read;
        reads.bytes += (read * row_bytes) + (past * selection.index_bits / 8.0);
        reads.dense_bytes += past * row_bytes;
        std::vector<float> out(static_cast<size_t>(block.group * count * shape.value_size));
        attend_selection(block, selection, out.data(), team);
        return out;
    }

    // Into the text's layout.
    void attend_block(int layer, int64_t first, int64_t count, int64_t before, std::vector<float> & all) {
        const TextShape & shape = text.shape;
        Cover cover;
        if (spec.wants_cover) {
            const int64_t past = first - window;
            Block block;
            block.past = past;
            cover = sized_cover(text.rows_of(layer, 0, past), tokens_in_budget(block, spec.cover_share()), Sign::kept,
                                taus[static_cast<size_t>(layer)], team);
        }
        const int64_t group = shape.heads / shape.kv_heads;
        for (int64_t kv_head = 0; kv_head < shape.kv_heads; kv_head++) {
            const auto out = attend(layer, first, count, before, kv_head, cover);
            for (int64_t i = 0; i < group * count; i++) {
                const int64_t head = (kv_head * group) + (i / count);
                std::copy_n(out.begin() + (i * shape.value_size), shape.value_size,
                            all.begin() + ((((first + (i % count)) * shape.heads) + head) * shape.value_size));
            }
        }
    }

    Outputs outputs() {
        Outputs all = text.dense;
        int64_t first = 0;
        int64_t before = 0;
        for (const int64_t count : lengths) {
            for (int layer = 0; layer < text.shape.layers && first > window; layer++) {
                attend_block(layer, first, count, before, all[static_cast<size_t>(layer)]);
            }
            first += count;
            before = count;
        }
        return all;
    }
};

TEST_F(Running, AMethodIsAskedWithWhatTheTextHas) {
    for (const std::string & method : select_methods) {
        if (method == "random") { // its seeds are nobody's business
            continue;
        }
        Outputs actual;
        const MethodRun running = run(method + ":0.3", actual);
        ByHand by_hand{ text, parse_method(method + ":0.3"), team };
        const Outputs expected = by_hand.outputs();
        for (size_t layer = 0; layer < expected.size(); layer++) {
            EXPECT_LT(test::relative_error(expected[layer], actual[layer]), 1e-6) << method << " layer " << layer;
        }
        EXPECT_EQ(running.reads().past, by_hand.reads.past) << method;
        EXPECT_EQ(running.reads().read, by_hand.reads.read) << method;
        EXPECT_NEAR(running.reads().bytes, by_hand.reads.bytes, 1e-6 * by_hand.reads.bytes) << method;
        EXPECT_EQ(running.reads().dense_bytes, by_hand.reads.dense_bytes) << method;
    }
}

TEST_F(Running, SaysHowFarTheOutputIsFromTheDenseOne) {
    for (const char * method : { "streaming:0.2", "joint:0.2", "copy:tau=0.5", "representatives:tau=0.5" }) {
        Outputs outputs;
        const MethodRun running = run(method, outputs);
        for (size_t layer = 0; layer < outputs.size(); layer++) {
            const LayerError & figure = running.layers()[layer];
            EXPECT_FALSE(figure.left_alone);
            EXPECT_GT(figure.difference, 0.0);
            // Blocks that the engine computed itself are in no sum
            const bool select = running.spec().select != nullptr;
            const auto skipped = static_cast<std::ptrdiff_t>(select ? 16 * text.width() : 0);
            const std::vector<float> dense(text.dense[layer].begin() + skipped, text.dense[layer].end());
            const std::vector<float> own(outputs[layer].begin() + skipped, outputs[layer].end());
            EXPECT_NEAR(std::sqrt(figure.difference / figure.norm), test::relative_error(dense, own), 1e-9) << method;
        }
    }
}

// One query over some tokens with something added to their logits, in double.
std::vector<double> naive_attention(const MadeText & text, int layer, int64_t query, int64_t head,
                                    const std::map<int64_t, double> & seen) {
    const TextShape & shape = text.shape;
    const auto at = static_cast<size_t>(layer);
    const int64_t kv_head = head / (shape.heads / shape.kv_heads);
    std::vector<double> sum(static_cast<size_t>(shape.value_size), 0.0);
    double total = 0.0;
    for (const auto & [token, bias] : seen) {
        const float * q = text.query[at].data() + (((query * shape.heads) + head) * shape.key_size);
        const float * k = text.key[at].data() + (((token * shape.kv_heads) + kv_head) * shape.key_size);
        const float * v = text.value[at].data() + (((token * shape.kv_heads) + kv_head) * shape.value_size);
        double product = 0.0;
        for (int64_t i = 0; i < shape.key_size; i++) {
            product += static_cast<double>(q[i]) * k[i];
        }
        const double weight = std::exp((0.5 * product) + bias);
        total += weight;
        for (size_t i = 0; i < sum.size(); i++) {
            sum[i] += weight * v[i];
        }
    }
    for (double & value : sum) {
        value /= total > 0.0 ? total : 1.0;
    }
    return sum;
}

void add_heads(const MadeText & text, int layer, int64_t query, const std::map<int64_t, double> & seen,
               std::vector<float> & out) {
    for (int64_t head = 0; head < text.shape.heads; head++) {
        const auto row = naive_attention(text, layer, query, head, seen);
        out.insert(out.end(), row.begin(), row.end());
    }
}

// Calls block(first, end) for each block of the text.
template <typename Call>
void for_each_block(const Call & call) {
    int64_t first = 0;
    for (const int64_t count : lengths) {
        call(first, first + count);
        first += count;
    }
}

TEST_F(Running, CopyIsThePapersAttention) {
    for (const bool earlier : { false, true }) {
        Outputs outputs;
        const MethodRun running = run(earlier ? "copy-earlier:tau=0.5" : "copy:tau=0.5", outputs);
        const CoverOptions options = { 0.5, Sign::ignored };
        double past = 0.0;
        double read = 0.0;
        for (int layer = 0; layer < text.shape.layers; layer++) {
            std::vector<float> expected;
            for_each_block([&](int64_t first, int64_t end) {
                const TokenRows rows = text.rows_of(layer, 0, end);
                Cover cover = threshold_cover(rows, options, team);
                cover = earlier ? assign(rows, cover.representatives, Reach::earlier, options, team) : cover;
                ASSERT_LT(cover.size(), end) << "somebody has to be copied";
                past += static_cast<double>(end);
                read += static_cast<double>(cover.size());
                for (int64_t token = first; token < end; token++) {
                    const int32_t speaker = cover.assigned[static_cast<size_t>(token)];
                    std::map<int64_t, double> seen;
                    for (const int32_t representative : cover.representatives) {
                        if (representative <= speaker) {
                            seen[representative] = 0.0;
                        }
                    }
                    add_heads(text, layer, speaker, seen, expected);
                }
            });
            EXPECT_LT(test::relative_error(expected, outputs[static_cast<size_t>(layer)]), 1e-5);
        }
        EXPECT_EQ(running.reads().past, past);
        EXPECT_EQ(running.reads().read, read);
    }
}

// What a query sees: its own window, and before it representatives with what they speak for so far.
std::map<int64_t, double> naive_sight(const Cover & cover, int64_t query, int64_t own_window, bool count) {
    std::map<int64_t, double> seen;
    for (int64_t token = std::max<int64_t>(0, query - own_window + 1); token <= query; token++) {
        seen[token] = 0.0;
    }
    for (const int32_t representative : cover.representatives) {
        int spoken_for = 0;
        for (int64_t token = 0; token <= query - own_window; token++) {
            spoken_for += cover.assigned[static_cast<size_t>(token)] == representative ? 1 : 0;
        }
        if (representative <= query - own_window) {
            seen[representative] = count ? std::log(static_cast<double>(spoken_for)) : 0.0;
        }
    }
    return seen;
}

TEST_F(Running, RepresentativesAreSeenWithWhatTheySpeakFor) {
    for (const int64_t own_window : { 0, 5 }) {
        for (const bool count : { true, false }) {
            const std::string method =
                "representatives:tau=0.5:window=" + std::to_string(own_window) + ":count=" + (count ? "1" : "0");
            Outputs outputs;
            run(method, outputs);
            const CoverOptions options = { 0.5, Sign::ignored };
            for (int layer = 0; layer < text.shape.layers; layer++) {
                std::vector<float> expected;
                for_each_block([&](int64_t first, int64_t end) {
                    const TokenRows rows = text.rows_of(layer, 0, end);
                    const auto chosen = threshold_cover(rows, options, team).representatives;
                    const Cover cover = assign(rows, chosen, Reach::earlier, options, team);
                    for (int64_t token = first; token < end; token++) {
                        add_heads(text, layer, token, naive_sight(cover, token, own_window, count), expected);
                    }
                });
                EXPECT_LT(test::relative_error(expected, outputs[static_cast<size_t>(layer)]), 1e-5) << method;
            }
        }
    }
}

TEST_F(Running, ARandomSetIsAsLargeAndNotTheSame) {
    Outputs chosen;
    Outputs random;
    Outputs again;
    const MethodRun one = run("representatives:tau=0.5:window=5", chosen);
    const MethodRun other = run("representatives:tau=0.5:window=5:set=random", random);
    run("representatives:tau=0.5:window=5:set=random", again);
    EXPECT_EQ(one.reads().read, other.reads().read);
    EXPECT_NE(chosen, random);
    EXPECT_EQ(random, again);
    for (const float value : random.front()) {
        ASSERT_TRUE(std::isfinite(value));
    }
}

TEST_F(Running, OneRunLeavesNothingForAnother) {
    for (const char * method : { "joint:0.2", "random:0.2", "snapkv:0.2", "copy:tau=0.5" }) {
        Outputs first;
        Outputs second;
        run(method, first);
        run(method, second);
        EXPECT_EQ(first, second) << method;
    }
}

// A sliding window as long as the first blocks shows itself only later: most of such a layer is the engine's.
TEST_F(Running, ALayerThatIsRefusedLaterIsLeftAloneToo) {
    for (const char * method : { "streaming:0.2", "representatives:tau=0.5" }) {
        MethodRun running(parse_method(method), 1, window, 1);
        std::vector<float> out;
        running.add_rows(0, text.rows_of(0, 0, 32));
        running.attend(0, 0, text.block(0, 0, 16, out), true, team);
        EXPECT_FALSE(running.layers().front().left_alone);
        Attention second = text.block(0, 16, 16, out);
        second.max_bias = 8.0F;
        running.attend(0, 16, second, true, team);
        EXPECT_TRUE(running.layers().front().left_alone) << method;
    }
}

class PlainlyCausal : public testing::Test {
  protected:
    PlainlyCausal() : attention(text.block(0, 20, 7, out)) {
        mask.assign(static_cast<size_t>(7 * text.shape.tokens), 0.0F);
        for (int64_t i = 0; i < 7; i++) {
            attention.mask.read(i, 0, 0, text.shape.tokens, mask.data() + (i * text.shape.tokens));
        }
        attention.mask.base = reinterpret_cast<const char *>(mask.data());
    }
    float & at(int64_t query, int64_t token) { return mask[static_cast<size_t>((query * text.shape.tokens) + token)]; }
    bool taken() const { return is_plainly_causal(attention, 20); }

    // Refused by the method too: nothing changes, and that is said.
    void expect_left_alone() {
        EXPECT_FALSE(taken());
        const std::vector<float> before = out;
        Team team(1);
        for (const char * method : { "streaming:0.1:window=0", "copy", "representatives" }) {
            MethodRun running(parse_method(method), 1, 0, 1);
            running.add_rows(0, text.rows_of(0, 0, 27));
            running.attend(0, 20, attention, true, team);
            EXPECT_TRUE(running.layers().front().left_alone) << method;
            EXPECT_EQ(running.reads().past, 0.0);
        }
        EXPECT_EQ(before, out);
    }

    MadeText text{ { 40, 4, 2, 8, 8, 1 } };
    std::vector<float> out;
    std::vector<float> mask;
    Attention attention;
};

TEST_F(PlainlyCausal, IsAPlainMask) {
    EXPECT_TRUE(taken());
    EXPECT_FALSE(is_plainly_causal(attention, 19));
    EXPECT_FALSE(is_plainly_causal(attention, 21));
    EXPECT_FALSE(is_plainly_causal(attention, 0));
    EXPECT_FALSE(is_plainly_causal(attention, 34)) << "beyond the cache";
}

TEST_F(PlainlyCausal, IsNoSlidingWindow) {
    for (int64_t i = 0; i < 7; i++) {
        for (int64_t token = 0; token + 8 <= 20 + i; token++) {
            at(i, token) = hidden;
        }
    }
    expect_left_alone();
}

TEST_F(PlainlyCausal, HidesNothingEarlier) {
    at(6, 3) = hidden;
    expect_left_alone();
}

TEST_F(PlainlyCausal, ShowsNothingLater) {
    at(0, 21) = 0.0F;
    expect_left_alone();
}

TEST_F(PlainlyCausal, HasNoBias) {
    at(2, 5) = -0.5F;
    expect_left_alone();
}

TEST_F(PlainlyCausal, HasNoAlibi) {
    attention.max_bias = 8.0F;
    expect_left_alone();
}

TEST_F(PlainlyCausal, HasNoSinks) {
    const std::vector<float> sinks(4, 0.0F);
    attention.sinks = sinks.data();
    expect_left_alone();
}

TEST_F(PlainlyCausal, IsOneStreamWithAMaskForAllHeads) {
    attention.streams = 2;
    expect_left_alone();
    attention.streams = 1;
    attention.mask_heads = 4;
    expect_left_alone();
    attention.mask_heads = 1;
    EXPECT_TRUE(taken());
    attention.mask.base = nullptr;
    expect_left_alone();
}

} // namespace
} // namespace cascade
