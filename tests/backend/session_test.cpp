// The whole way without a model: attention graphs of random shapes, types and masks, computed by the engine's CPU
// backend and by ours in front of it. Runs under ThreadSanitizer too, with an engine built for it.
#include "backend/backend.h"
#include "backend/engine.h"
#include "backend/session.h"
#include "backend/stats.h"
#include "support/compare.h"

#include "ggml-alloc.h"
#include "ggml-cpp.h"

#include <cmath>
#include <fstream>
#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

namespace cascade::backend {
namespace {

struct Case {
    bool flash = true;
    ggml_type key_type = GGML_TYPE_F16, value_type = GGML_TYPE_F16;
    int64_t queries = 3, tokens = 40, heads = 4, kv_heads = 2, streams = 1, key_size = 64, value_size = 64;
    float soft_cap = 0.0F, max_bias = 0.0F;
    bool mask = true, sinks = false;
    double hidden_share = 0.3;
};

void load_engine() {
    static const bool once = (ggml_backend_load_all_from_path(CASCADE_BIN), true);
    (void)once;
}

ggml_backend_t new_engine(int threads) {
    ggml_backend_t cpu = ggml_backend_dev_init(cpu_device(), nullptr);
    reinterpret_cast<ggml_backend_set_n_threads_t>(cpu_function("ggml_backend_set_n_threads"))(cpu, threads);
    return cpu;
}

// An attention graph on a scheduler of its own, so that memory is allocated and reused as in a real context.
class AttentionGraph {
  public:
    AttentionGraph(const Case & c, uint32_t seed, ggml_backend_t first) : random(seed), engine(new_engine(2)) {
        context.reset(ggml_init({ 1 << 20, nullptr, true }));
        build(c);
        std::vector<ggml_backend_t> backends = { engine.get() };
        if (first != nullptr) {
            backends.insert(backends.begin(), first);
        }
        sched.reset(
            ggml_backend_sched_new(backends.data(), nullptr, static_cast<int>(backends.size()), 256, false, false));
        EXPECT_TRUE(ggml_backend_sched_alloc_graph(sched.get(), graph));
    }

    std::vector<float> compute() {
        for (auto & [tensor, bytes] : inputs) {
            ggml_backend_tensor_set(tensor, bytes.data(), 0, bytes.size());
        }
        EXPECT_EQ(ggml_backend_sched_graph_compute(sched.get(), graph), GGML_STATUS_SUCCESS);
        std::vector<float> result(static_cast<size_t>(ggml_nelements(output)));
        ggml_backend_tensor_get(output, result.data(), 0, result.size() * sizeof(float));
        return result;
    }

    uint64_t content() const { return graph::fingerprint(graph::nodes_of(*graph)); }

  private:
    ggml_tensor * input(ggml_type type, std::vector<int64_t> ne) {
        ggml_tensor * tensor = ggml_new_tensor(context.get(), type, static_cast<int>(ne.size()), ne.data());
        ggml_set_input(tensor);
        return tensor;
    }

    ggml_tensor * random_input(ggml_type type, std::vector<int64_t> ne) {
        ggml_tensor * tensor = input(type, std::move(ne));
        std::normal_distribution<float> normal;
        std::vector<float> values(static_cast<size_t>(ggml_nelements(tensor)));
        for (float & value : values) {
            value = normal(random);
        }
        store(tensor, values);
        return tensor;
    }

    void store(ggml_tensor * tensor, const std::vector<float> & values) {
        std::vector<char> bytes(ggml_nbytes(tensor));
        if (tensor->type == GGML_TYPE_F32) {
            std::memcpy(bytes.data(), values.data(), bytes.size());
        } else {
            ggml_quantize_chunk(tensor->type, values.data(), bytes.data(), 0, ggml_nrows(tensor), tensor->ne[0],
                                nullptr);
        }
        inputs.emplace_back(tensor, std::move(bytes));
    }

    ggml_tensor * random_mask(const Case & c) {
        ggml_tensor * mask = input(c.flash ? GGML_TYPE_F16 : GGML_TYPE_F32, { c.tokens, c.queries, 1, c.streams });
        std::bernoulli_distribution hide(c.hidden_share);
        std::uniform_real_distribution<float> distance(-10.0F, 0.0F);
        std::vector<float> values(static_cast<size_t>(ggml_nelements(mask)));
        for (size_t i = 0; i < values.size(); i++) {
            const bool first = static_cast<int64_t>(i) % c.tokens == 0; // every query sees a token
            values[i] = c.max_bias > 0.0F ? distance(random) : 0.0F;
            values[i] = !first && hide(random) ? -std::numeric_limits<float>::infinity() : values[i];
        }
        store(mask, values);
        return mask;
    }

    void build(const Case & c) {
        ggml_context * ctx = context.get();
        // as the engine lays them out: [size, heads, tokens], permuted; a computed query, whose memory may be reused
        ggml_tensor * q =
            ggml_scale(ctx, random_input(GGML_TYPE_F32, { c.key_size, c.heads, c.queries, c.streams }), 1.5F);
        ggml_tensor * k = random_input(c.key_type, { c.key_size, c.kv_heads, c.tokens, c.streams });
        ggml_tensor * mask = c.mask ? random_mask(c) : nullptr;
        ggml_tensor * sinks = c.sinks ? random_input(GGML_TYPE_F32, { c.heads }) : nullptr;
        q = ggml_permute(ctx, q, 0, 2, 1, 3);
        k = ggml_permute(ctx, k, 0, 2, 1, 3);
        const float scale = c.flash || c.soft_cap == 0.0F ? 0.125F : 1.0F;
        if (c.flash) {
            ggml_tensor * v = random_input(c.value_type, { c.value_size, c.kv_heads, c.tokens, c.streams });
            output =
                ggml_flash_attn_ext(ctx, q, k, ggml_permute(ctx, v, 0, 2, 1, 3), mask, scale, c.max_bias, c.soft_cap);
            ggml_flash_attn_ext_add_sinks(output, sinks);
        } else {
            ggml_tensor * v = random_input(c.value_type, { c.tokens, c.value_size, c.kv_heads, c.streams });
            ggml_tensor * kq = ggml_mul_mat(ctx, k, q);
            if (c.soft_cap != 0.0F) {
                kq = ggml_scale(ctx, ggml_tanh(ctx, ggml_scale(ctx, kq, 1.0F / c.soft_cap)), c.soft_cap);
            }
            kq = ggml_soft_max_ext(ctx, kq, mask, scale, c.max_bias);
            ggml_soft_max_add_sinks(kq, sinks);
            output = ggml_mul_mat(ctx, v, kq);
        }
        ggml_set_name(output, "attention-3");
        output = ggml_cont(ctx, ggml_scale(ctx, output, 1.0F));
        ggml_set_output(output);
        graph = ggml_new_graph(ctx);
        ggml_build_forward_expand(graph, output);
    }

    std::mt19937 random;
    ggml_backend_ptr engine;
    ggml_context_ptr context;
    ggml_backend_sched_ptr sched;
    std::vector<std::pair<ggml_tensor *, std::vector<char>>> inputs;
    ggml_tensor * output = nullptr;
    ggml_cgraph * graph = nullptr;
};

Case random_case(std::mt19937 & random, int round) {
    const auto pick = [&](int64_t low, int64_t high) {
        return std::uniform_int_distribution<int64_t>(low, high)(random);
    };
    const ggml_type types[] = { GGML_TYPE_F16, GGML_TYPE_Q8_0, GGML_TYPE_F32, GGML_TYPE_BF16, GGML_TYPE_Q4_0 };
    Case c;
    c.flash = round % 2 == 0;
    c.key_type = types[pick(0, 4)];
    c.value_type = c.flash ? types[pick(0, 4)] : (pick(0, 1) == 0 ? GGML_TYPE_F16 : GGML_TYPE_F32);
    c.kv_heads = pick(1, 3), c.heads = c.kv_heads * pick(1, 4);
    c.queries = pick(1, 70), c.tokens = 32 * pick(1, 8), c.streams = pick(1, 2);
    c.key_size = 32 * pick(1, 4), c.value_size = 32 * pick(1, 4);
    c.soft_cap = pick(0, 3) == 0 ? 5.0F : 0.0F;
    c.max_bias = pick(0, 3) == 0 ? 8.0F : 0.0F;
    c.sinks = pick(0, 2) == 0;
    c.mask = c.max_bias > 0.0F || pick(0, 4) != 0;
    c.hidden_share = 0.2 * static_cast<double>(pick(0, 4));
    return c;
}

// The engine sums flash attention's f16 values in f16, and rounds weights or queries to f16 or bf16; the oracle
// doesn't.
double tolerance(const Case & c) {
    return c.key_type == GGML_TYPE_BF16 || c.value_type == GGML_TYPE_BF16 ? 0.02 : 0.004;
}

Settings reference_settings() {
    Settings settings;
    settings.mode = Mode::reference;
    return settings;
}

TEST(Session, ReferenceMatchesTheEngineOverRandomAttention) {
    load_engine();
    const std::string stats = testing::TempDir() + "session_stats.jsonl";
    std::remove(stats.c_str());
    Settings settings = reference_settings();
    settings.stats = stats;
    std::mt19937 random(11);
    constexpr int rounds = 60;
    for (int round = 0; round < rounds; round++) {
        const Case c = random_case(random, round);
        const auto seed = static_cast<uint32_t>(round);
        ggml_backend_ptr ours(make_backend(std::make_shared<const Settings>(settings)));
        const auto expected = AttentionGraph(c, seed, nullptr).compute();
        const auto got = AttentionGraph(c, seed, ours.get()).compute();
        ASSERT_LT(test::relative_error(expected, got), tolerance(c))
            << "round " << round << (c.flash ? " flash " : " softmax ") << ggml_type_name(c.key_type) << "/"
            << ggml_type_name(c.value_type);
    }
    int taken = 0; // the forced path must have run
    std::ifstream lines(stats);
    for (std::string line; std::getline(lines, line);) {
        const auto json = nlohmann::json::parse(line);
        taken += json["type"] == "summary" ? json["sites_taken"].get<int>() : 0;
    }
    EXPECT_EQ(taken, rounds);
}

TEST(Session, ExactModeAndFailingNodesGiveTheEnginesBytes) {
    load_engine();
    std::mt19937 random(12);
    for (int round = 0; round < 20; round++) {
        const Case c = random_case(random, round);
        const auto expected = AttentionGraph(c, 5, nullptr).compute();
        Settings settings;
        for (const Fault fault : { Fault::none, Fault::read, Fault::rewrite, Fault::scratch, Fault::node }) {
            settings.mode = fault == Fault::none ? Mode::exact : Mode::reference;
            settings.fault = fault;
            ggml_backend_ptr ours(make_backend(std::make_shared<const Settings>(settings)));
            ASSERT_EQ(expected, AttentionGraph(c, 5, ours.get()).compute()) << "round " << round;
        }
    }
}

int summaries_in(const std::string & file) {
    int count = 0;
    std::ifstream lines(file);
    for (std::string line; std::getline(lines, line);) {
        count += nlohmann::json::parse(line)["type"] == "summary" ? 1 : 0;
    }
    return count;
}

TEST(Session, AGraphThatIsComputedAgainIsRecognised) {
    load_engine();
    const std::string stats = testing::TempDir() + "session_reuse.jsonl";
    std::remove(stats.c_str());
    Settings settings = reference_settings();
    settings.stats = stats;
    {
        ggml_backend_ptr ours(make_backend(std::make_shared<const Settings>(settings)));
        AttentionGraph graph({}, 1, ours.get());
        const uint64_t content = graph.content();
        const auto first = graph.compute();
        for (int i = 0; i < 9; i++) {
            EXPECT_EQ(first, graph.compute());
        }
        EXPECT_EQ(content, graph.content()) << "the engine's own graph was altered";
        EXPECT_EQ(summaries_in(stats), 0);
        Stats::write_summaries();
        EXPECT_EQ(summaries_in(stats), 1) << "a program may ask in between";
    }
    EXPECT_EQ(summaries_in(stats), 2);
    std::ifstream lines(stats);
    nlohmann::json summary;
    for (std::string line; std::getline(lines, line);) {
        summary = nlohmann::json::parse(line);
    }
    EXPECT_EQ(summary["type"], "summary");
    EXPECT_EQ(summary["graphs"], 10);
    EXPECT_EQ(summary["graphs_new"], 1);
    EXPECT_EQ(summary["graphs_recognised"], 9);
    EXPECT_EQ(summary["graphs_rewritten"], 10);
}

TEST(Session, TwoBackendsWorkSideBySide) {
    load_engine();
    const auto work = [](uint32_t seed, bool & good) {
        const Settings settings = reference_settings();
        ggml_backend_ptr ours(make_backend(std::make_shared<const Settings>(settings)));
        Case c;
        c.flash = seed % 2 == 0;
        c.queries = 16;
        AttentionGraph graph(c, seed, ours.get());
        const auto first = graph.compute();
        good = true;
        for (int i = 0; i < 10; i++) {
            good = good && first == graph.compute();
        }
    };
    bool good[2] = {};
    std::thread one(work, 1, std::ref(good[0]));
    std::thread two(work, 2, std::ref(good[1]));
    one.join();
    two.join();
    EXPECT_TRUE(good[0]);
    EXPECT_TRUE(good[1]);
}

// The engine turns fused ops off (-fa auto among them) when their node's device is not the layer's.
TEST(Session, TheEnginesProbesSeeTheCpu) {
    load_engine();
    const Settings settings;
    const ggml_backend_ptr ours(make_backend(std::make_shared<const Settings>(settings)));
    EXPECT_EQ(ggml_backend_get_device(ours.get()), cpu_device());
    EXPECT_STREQ(ggml_backend_name(ours.get()), "Cascade");
}

// Graphs without a uid (rpc-server's) are told apart by content: another one at the same address must not pass as
// the one before.
TEST(Session, AGraphWithoutUidIsKnownByItsContent) {
    load_engine();
    AttentionGraph graph({}, 1, nullptr);
    ggml_context_ptr context(ggml_init({ 1 << 16, nullptr, true }));
    ggml_tensor * a = ggml_new_tensor_1d(context.get(), GGML_TYPE_F32, 8);
    ggml_tensor * nodes[] = { ggml_scale(context.get(), a, 2.0F) };
    const uint64_t before = graph::fingerprint(nodes);
    EXPECT_EQ(before, graph::fingerprint(nodes));
    a->data = nodes; // a leaf moved
    EXPECT_NE(before, graph::fingerprint(nodes));
    a->data = nullptr;
    EXPECT_EQ(before, graph::fingerprint(nodes));
    a->op = GGML_OP_CPY; // a source that another part of the graph computes, and that changed as well
    const uint64_t computed = graph::fingerprint(nodes);
    a->ne[1]++;
    EXPECT_NE(computed, graph::fingerprint(nodes));
    nodes[0]->op_params[0]++;
    EXPECT_NE(before, graph::fingerprint(nodes));
}

} // namespace
} // namespace cascade::backend
