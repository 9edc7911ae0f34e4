// The graph reader on tiny models of many architectures, both attention forms, each site asserted by name.
#include "cli/probe.h"
#include "graph/model_graph.h"
#include "graph/tensor.h"
#include "graph/weight_identity.h"
#include "support/tiny_models.h"

#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <unistd.h>

namespace cascade::test {
void PrintTo(const TinyModel & model, std::ostream * out) { *out << model.name; }
} // namespace cascade::test

namespace cascade::graph {
namespace {

using test::TinyModel;
using Names = std::vector<std::string>;

// Every linear site of a layer in graph order; '|' parts those that read different inputs.
const std::map<std::string, Names> expected_sites = {
    { "llama", { "attn_q", "attn_v", "attn_k", "|", "attn_output", "|", "ffn_gate", "ffn_up", "|", "ffn_down" } },
    { "gpt2", { "attn_qkv", "|", "attn_output", "|", "ffn_up", "|", "ffn_down" } },
    { "qwen2", { "attn_q", "attn_v", "attn_k", "|", "attn_output", "|", "ffn_gate", "ffn_up", "|", "ffn_down" } },
    { "qwen3", { "attn_q", "attn_v", "attn_k", "|", "attn_output", "|", "ffn_gate", "ffn_up", "|", "ffn_down" } },
    { "gemma2", { "attn_q", "attn_k", "attn_v", "|", "attn_output", "|", "ffn_gate", "ffn_up", "|", "ffn_down" } },
    { "gemma3", { "attn_q", "attn_k", "attn_v", "|", "attn_output", "|", "ffn_gate", "ffn_up", "|", "ffn_down" } },
    { "phi2", { "attn_q", "attn_v", "attn_k", "|", "attn_output", "|", "ffn_up", "|", "ffn_down" } },
    { "phi3", { "attn_qkv", "|", "attn_output", "|", "ffn_up", "|", "ffn_down" } },
    { "bloom", { "attn_qkv", "|", "attn_output", "|", "ffn_up", "|", "ffn_down" } },
    { "mpt", { "attn_qkv", "|", "attn_output", "|", "ffn_up", "|", "ffn_down" } },
    { "bert", { "attn_q", "attn_k", "attn_v", "|", "attn_output", "|", "ffn_up", "|", "ffn_down" } },
    { "starcoder2", { "attn_q", "attn_v", "attn_k", "|", "attn_output", "|", "ffn_up", "|", "ffn_down" } },
    { "stablelm", { "attn_q", "attn_v", "attn_k", "|", "attn_output", "|", "ffn_gate", "ffn_up", "|", "ffn_down" } },
    { "moe",
      { "attn_q", "attn_v", "attn_k", "|", "attn_output", "|", "ffn_gate_inp", "ffn_gate_exps", "ffn_up_exps", "|",
        "ffn_down_exps" } },
    { "gpt-oss",
      { "attn_q", "attn_k", "attn_v", "|", "attn_output", "|", "ffn_gate_inp", "ffn_gate_exps", "ffn_up_exps", "|",
        "ffn_down_exps" } },
};

struct Opened {
    std::unique_ptr<cli::Probe> probe;
    ModelGraph graph;
};

Opened open(const TinyModel & model, bool flash, ggml_type cache = GGML_TYPE_F16) {
    const std::string path = testing::TempDir() + "reader_test_" + std::to_string(::getpid()) + ".gguf";
    test::write_tiny_model(model, path);
    cli::ProbeOptions options;
    options.model = path;
    options.flash_attention = flash ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
    options.cache_type_k = cache;
    Opened opened;
    opened.probe = cli::probe_model(options);
    std::remove(path.c_str());
    opened.graph = read_graph(opened.probe->nodes);
    return opened;
}

Names site_names(const std::vector<LinearSite> & sites) {
    Names names;
    for (size_t i = 0; i < sites.size(); i++) {
        if (i > 0 && sites[i].input_group != sites[i - 1].input_group) {
            names.emplace_back("|");
        }
        names.push_back(sites[i].name);
    }
    return names;
}

// Which layers the engine gives a sliding window, by the rule of each architecture.
bool has_window(const TinyModel & model, int layer) {
    if (model.sliding_window == 0) {
        return false;
    }
    const int period = model.arch == "gemma3" ? 6 : 2;
    return layer % period != period - 1;
}

void check_attention(const TinyModel & model, const AttentionSite & site, bool flash) {
    EXPECT_EQ(site.form, flash ? AttentionForm::flash : AttentionForm::softmax);
    EXPECT_EQ(site.heads(), model.heads);
    EXPECT_EQ(site.kv_heads(), model.kv_heads);
    EXPECT_EQ(site.key_size(), model.head_size);
    EXPECT_EQ(site.value_size(), model.head_size);
    EXPECT_EQ(site.uses_cache(), model.causal);
    EXPECT_EQ(site.sinks != nullptr, model.sinks);
    EXPECT_EQ(site.soft_cap != 0.0F, model.soft_cap);
    EXPECT_EQ(site.max_bias > 0.0F, model.alibi);
    EXPECT_EQ(site.bias, nullptr);
    ASSERT_NE(site.mask, nullptr);
    EXPECT_EQ(site.mask->ne[0], site.tokens());
    const size_t chain = 3U + (model.soft_cap ? 3U : 0U);
    EXPECT_EQ(site.nodes.size(), flash ? 1U : chain);
    // q is scaled in the graph or by the op: with the product of both it is 1 / sqrt(head size)
    const float scale = site.soft_cap != 0.0F ? site.pre_scale * site.soft_cap : site.pre_scale;
    const float expected = 1.0F / std::sqrt(static_cast<float>(model.head_size));
    const float product = scale * site.post_scale;
    EXPECT_TRUE(std::abs(product - expected) < 1e-6F || std::abs(product - 1.0F) < 1e-6F) << product;
}

void check_inputs(const TinyModel & model, const Layer & layer) {
    ASSERT_NE(layer.normalised, nullptr);
    ASSERT_NE(layer.residual, nullptr);
    EXPECT_EQ(layer.normalised->ne[0], model.embd);
    EXPECT_EQ(layer.residual->ne[0], model.embd);
    EXPECT_EQ(skip_views(layer.linear.front().input), skip_views(layer.normalised));
    ASSERT_NE(layer.pre_rotary_key, nullptr);
    ASSERT_NE(layer.post_rotary_key, nullptr);
    EXPECT_EQ(layer.pre_rotary_key != layer.post_rotary_key, model.rotary && model.causal);
    if (layer.pre_rotary_key != layer.post_rotary_key) {
        EXPECT_EQ(layer.post_rotary_key->op, GGML_OP_ROPE);
        EXPECT_EQ(layer.pre_rotary_key->ne[0], model.head_size);
        EXPECT_EQ(layer.pre_rotary_key->ne[1], model.kv_heads);
    }
    if (model.causal) { // an encoder normalises after its layers
        ASSERT_NE(layer.norm_weight, nullptr);
        EXPECT_EQ(layer.norm_weight->name, "blk." + std::to_string(layer.index) + ".attn_norm.weight");
        EXPECT_TRUE(identity_of(layer.norm_weight));
    }
    ASSERT_NE(layer.new_value, nullptr);
    EXPECT_EQ(layer.key_writes.size(), model.causal ? 1U : 0U);
    EXPECT_EQ(layer.value_writes.size(), model.causal ? 1U : 0U);
    if (model.causal) {
        EXPECT_EQ(layer.key_writes[0].cache->name, "cache_k_l" + std::to_string(layer.index));
        EXPECT_EQ(layer.value_writes[0].cache->name, "cache_v_l" + std::to_string(layer.index));
        EXPECT_STREQ(layer.key_writes[0].index->name, "attn_inp_k_idxs");
        EXPECT_STREQ(layer.value_writes[0].index->name, "attn_inp_v_idxs");
    }
}

void check_model(const TinyModel & model, bool flash) {
    const Opened opened = open(model, flash);
    ASSERT_EQ(opened.graph.layers.size(), static_cast<size_t>(model.layers));
    for (int i = 0; i < model.layers; i++) {
        const Layer & layer = opened.graph.layers[static_cast<size_t>(i)];
        SCOPED_TRACE("layer " + std::to_string(i));
        EXPECT_EQ(layer.index, i);
        ASSERT_EQ(layer.attention.size(), 1U);
        EXPECT_EQ(layer.sliding, has_window(model, i));
        check_attention(model, layer.attention[0], flash);
        check_inputs(model, layer);
        EXPECT_EQ(site_names(layer.linear), expected_sites.at(model.name));
        for (const LinearSite & site : layer.linear) {
            EXPECT_EQ(site.routed, site.name.ends_with("_exps")) << site.name;
        }
    }
    EXPECT_EQ(opened.graph.outside.size(), model.causal ? 1U : 0U); // the output head
    for (const Unrecognised & node : opened.graph.unrecognised) {
        ADD_FAILURE() << node.name << " (" << node.op << "): " << node.why;
    }
}

class EveryArchitecture : public testing::TestWithParam<TinyModel> {};

TEST_P(EveryArchitecture, FlashForm) { check_model(GetParam(), true); }
TEST_P(EveryArchitecture, SoftmaxForm) { check_model(GetParam(), false); }

INSTANTIATE_TEST_SUITE_P(Reader, EveryArchitecture, testing::ValuesIn(test::tiny_models()), [](const auto & given) {
    std::string name = given.param.name;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
});

// With a quantised cache and head sizes of 64 the engine rotates keys by a Hadamard matrix: not a linear map of the
// model, and the pre-rotary key is still found behind it.
TEST(Reader, SeesThroughTheEnginesRotationOfKeys) {
    TinyModel model = test::tiny_models().front();
    model.heads = 2, model.kv_heads = 1, model.head_size = 64;
    const Opened opened = open(model, true, GGML_TYPE_Q8_0);
    EXPECT_TRUE(opened.graph.unrecognised.empty());
    for (const Layer & layer : opened.graph.layers) {
        ASSERT_NE(layer.post_rotary_key, nullptr);
        EXPECT_EQ(layer.post_rotary_key->op, GGML_OP_ROPE);
        EXPECT_EQ(layer.linear.size(), 7U);
    }
}

// Part of a graph, as a program with an eval callback computes it: no crash, nothing invented.
TEST(Reader, TakesAnyPartOfAGraph) {
    for (const bool flash : { true, false }) {
        const Opened opened = open(test::tiny_models().front(), flash);
        const Nodes nodes = opened.probe->nodes;
        for (size_t start = 0; start < nodes.size(); start += 3) {
            const ModelGraph part = read_graph(nodes.subspan(start, std::min<size_t>(7, nodes.size() - start)));
            for (const Layer & layer : part.layers) {
                EXPECT_LT(layer.index, test::tiny_models().front().layers);
                for (const AttentionSite & site : layer.attention) {
                    EXPECT_LT(site.nodes.back(), 7);
                }
            }
        }
    }
}

// A graph may come from another machine: chains that bite their own tail must not hold us.
TEST(Reader, EndsOnCycles) {
    for (int op = 0; op < GGML_OP_COUNT; op++) {
        ggml_tensor tensor = {};
        tensor.op = static_cast<ggml_op>(op);
        tensor.view_src = &tensor;
        std::fill(std::begin(tensor.src), std::end(tensor.src), &tensor);
        std::fill(std::begin(tensor.ne), std::end(tensor.ne), 4);
        ggml_tensor * nodes[] = { &tensor, &tensor };
        EXPECT_LE(read_graph(nodes).layers.size(), 1U) << ggml_op_name(tensor.op);
    }
}

TEST(Reader, SurvivesNodesWithoutSources) {
    std::vector<ggml_tensor> tensors(GGML_OP_COUNT);
    std::vector<ggml_tensor *> nodes = { nullptr };
    for (int op = 0; op < GGML_OP_COUNT; op++) {
        tensors[static_cast<size_t>(op)].op = static_cast<ggml_op>(op);
        nodes.push_back(&tensors[static_cast<size_t>(op)]);
    }
    const ModelGraph graph = read_graph(nodes);
    EXPECT_TRUE(graph.layers.empty());
}

} // namespace
} // namespace cascade::graph
