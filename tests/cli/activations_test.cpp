// Rows as they are streamed against rows collected node by node in a plain pass, on tiny models of many architectures.
#include "cli/activations.h"

#include "cli/engine.h"
#include "cli/interrupt.h"
#include "graph/model_graph.h"
#include "graph/tensor.h"
#include "support/compare.h"
#include "support/tiny_models.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <stdexcept>
#include <unistd.h>

namespace cascade::test {
void PrintTo(const TinyModel & model, std::ostream * out) { *out << model.name; }
} // namespace cascade::test

namespace cascade::cli {
namespace {

using test::TinyModel;
using Values = std::vector<float>;
using Tokens = std::vector<llama_token>;

constexpr int64_t window_size = 21; // longer than the sliding windows, and no multiple of anything
constexpr int threads = 2;

const TinyModel & model_named(const std::string & name) {
    const auto & models = test::tiny_models();
    return *std::find_if(models.begin(), models.end(), [&](const TinyModel & model) { return model.name == name; });
}

llama_model_ptr open(const TinyModel & model) {
    start_engine();
    const std::string path = testing::TempDir() + "activations_test_" + std::to_string(::getpid()) + ".gguf";
    test::write_tiny_model(model, path);
    llama_model_ptr opened = load_model(path, true);
    std::remove(path.c_str());
    return opened;
}

Tokens some_tokens(const TinyModel & model, int64_t count = window_size) {
    Tokens tokens;
    for (int64_t i = 0; i < count; i++) {
        tokens.push_back(static_cast<llama_token>((7 + (i * i * 5) + i) % model.vocab));
    }
    return tokens;
}

// A node's values as a plain program reads them: through the strides of its dimensions.
Values values_of(const ggml_tensor * tensor) {
    Values values;
    const ToFloat convert = graph::to_float(tensor->type);
    for (int64_t l = 0; l < tensor->ne[3]; l++) {
        for (int64_t k = 0; k < tensor->ne[2]; k++) {
            for (int64_t j = 0; j < tensor->ne[1]; j++) {
                for (int64_t i = 0; i < tensor->ne[0]; i++) {
                    float value = 0.0F;
                    const auto offset =
                        (static_cast<size_t>(i) * tensor->nb[0]) + (static_cast<size_t>(j) * tensor->nb[1]) +
                        (static_cast<size_t>(k) * tensor->nb[2]) + (static_cast<size_t>(l) * tensor->nb[3]);
                    convert(static_cast<const char *>(tensor->data) + offset, &value, 1);
                    values.push_back(value);
                }
            }
        }
    }
    return values;
}

bool holds_floats(const ggml_tensor * tensor) {
    return tensor->data != nullptr && (tensor->type == GGML_TYPE_F32 || tensor->type == GGML_TYPE_F16);
}

// A pass in which every node is computed by itself and copied.
class PlainPass {
  public:
    PlainPass(llama_model * model, Tokens tokens) {
        llama_context_params params = llama_context_default_params();
        params.n_ctx = params.n_batch = params.n_ubatch = static_cast<uint32_t>(tokens.size());
        params.n_threads = params.n_threads_batch = threads;
        params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
        params.cb_eval = on_node;
        params.cb_eval_user_data = this;
        context.reset(llama_init_from_model(model, params));
        nodes.clear();
        EXPECT_EQ(llama_decode(context.get(), llama_batch_get_one(tokens.data(), static_cast<int32_t>(tokens.size()))),
                  0);
        graph = graph::read_graph(nodes);
    }

    const Values & at(const ggml_tensor * tensor) const { return values.at(tensor); }

    const ggml_tensor * tensor(int layer, Source source) const {
        const graph::Layer & of = graph.layers.at(static_cast<size_t>(layer));
        const std::map<Source, const ggml_tensor *> sources = { { Source::residual, of.residual },
                                                                { Source::normalised, of.normalised },
                                                                { Source::key, of.pre_rotary_key },
                                                                { Source::value, of.new_value } };
        return sources.at(source);
    }

    graph::ModelGraph graph;

  private:
    static bool on_node(ggml_tensor * tensor, bool ask, void * self) {
        auto * pass = static_cast<PlainPass *>(self);
        if (ask) {
            pass->nodes.push_back(tensor);
        } else if (holds_floats(tensor)) {
            pass->values[tensor] = values_of(tensor);
        }
        return true;
    }

    llama_context_ptr context;
    std::vector<ggml_tensor *> nodes;
    std::map<const ggml_tensor *, Values> values;
};

struct Handed {
    int layer = -1;
    bool attention = false;
    Source source = Source::residual;
    int64_t heads = 0;
    Values rows; // token after token
    Values engine_output;
    Values reference_output;
    std::vector<Values> value_rows;        // of each token, from the attention's side
    std::vector<std::vector<bool>> hidden; // by query and token
};

Values packed(const TokenRows & rows) {
    Values values;
    for (int64_t t = 0; t < rows.tokens; t++) {
        values.insert(values.end(), rows.row(t), rows.row(t) + rows.size);
    }
    return values;
}

Values output_of(const Attention & attention) {
    Values values;
    for (int64_t query = 0; query < attention.queries; query++) {
        for (int64_t head = 0; head < attention.heads; head++) {
            const auto * row = reinterpret_cast<const float *>(
                attention.out + (static_cast<size_t>(query) * attention.out_query_stride) +
                (static_cast<size_t>(head) * attention.out_head_stride));
            values.insert(values.end(), row, row + attention.value_size);
        }
    }
    return values;
}

Values reference_of(const Attention & own) {
    Attention attention = own;
    Values out(static_cast<size_t>(own.queries * own.heads * own.value_size));
    attention.out = reinterpret_cast<char *>(out.data());
    attention.out_head_stride = static_cast<size_t>(own.value_size) * sizeof(float);
    attention.out_query_stride = static_cast<size_t>(own.heads) * attention.out_head_stride;
    AttentionScratch scratch;
    attend_reference(attention, 0, 1, scratch);
    return out;
}

Handed handed_attention(int layer, const Attention & attention) {
    Handed handed;
    handed.layer = layer;
    handed.attention = true;
    handed.engine_output = output_of(attention);
    handed.reference_output = reference_of(attention);
    Values row(static_cast<size_t>(std::max(attention.tokens, attention.value_size)));
    for (int64_t t = 0; t < window_size; t++) {
        Values heads;
        for (int64_t head = 0; head < attention.kv_heads; head++) {
            attention.value.read(t, head, 0, attention.value_size, row.data());
            heads.insert(heads.end(), row.begin(), row.begin() + attention.value_size);
        }
        handed.value_rows.push_back(heads);
        attention.mask.read(t, 0, 0, attention.tokens, row.data());
        std::vector<bool> hidden;
        std::transform(row.begin(), row.begin() + attention.tokens, std::back_inserter(hidden),
                       [](float value) { return std::isinf(value); });
        handed.hidden.push_back(hidden);
    }
    return handed;
}

ActivationListener recorder(std::vector<Handed> & all) {
    ActivationListener listener;
    listener.on_rows = [&](int layer, Source source, const TokenRows & rows, int64_t heads) {
        EXPECT_EQ(rows.tokens, window_size);
        Handed handed;
        handed.layer = layer;
        handed.source = source;
        handed.heads = heads;
        handed.rows = packed(rows);
        all.push_back(std::move(handed));
    };
    listener.on_attention = [&](int layer, const Attention & attention) {
        all.push_back(handed_attention(layer, attention));
    };
    return listener;
}

std::vector<Handed> record(ActivationStream & stream, const Tokens & tokens) {
    std::vector<Handed> all;
    EXPECT_TRUE(stream.run(tokens, recorder(all)));
    return all;
}

void expect_same(const std::vector<Handed> & a, const std::vector<Handed> & b) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); i++) {
        EXPECT_EQ(a[i].layer, b[i].layer);
        EXPECT_EQ(a[i].rows, b[i].rows) << "layer " << a[i].layer;
        EXPECT_EQ(a[i].engine_output, b[i].engine_output) << "layer " << a[i].layer;
    }
}

class EveryDecoder : public testing::TestWithParam<TinyModel> {
  protected:
    EveryDecoder() : model(open(GetParam())), tokens(some_tokens(GetParam())) {}

    llama_model_ptr model;
    Tokens tokens;
};

TEST_P(EveryDecoder, RowsAreThoseOfAPlainPass) {
    ActivationStream stream(model.get(), window_size, threads);
    const auto all = record(stream, tokens);
    const PlainPass plain(model.get(), tokens);
    for (const Handed & handed : all) {
        if (!handed.attention) {
            const ggml_tensor * tensor = plain.tensor(handed.layer, handed.source);
            EXPECT_EQ(handed.rows, plain.at(tensor)) << tensor->name;
        }
    }
}

// The residual stream by the engine's own names: what a layer leaves is the next one's input.
TEST_P(EveryDecoder, ResidualsAreTheEnginesLayerOutputs) {
    const PlainPass plain(model.get(), tokens);
    for (int layer = 1; layer < GetParam().layers; layer++) {
        EXPECT_EQ(plain.tensor(layer, Source::residual)->name, "l_out-" + std::to_string(layer - 1));
    }
}

TEST_P(EveryDecoder, EachSourceComesOnceInALayerAndTheAttentionLast) {
    ActivationStream stream(model.get(), window_size, threads);
    ASSERT_EQ(stream.layers(), GetParam().layers);
    const auto all = record(stream, tokens);
    ASSERT_EQ(all.size(), static_cast<size_t>(GetParam().layers) * 5);
    for (size_t i = 0; i < all.size(); i++) {
        EXPECT_EQ(all[i].layer, static_cast<int>(i / 5));
        EXPECT_EQ(all[i].attention, i % 5 == 4) << i;
    }
    for (int layer = 0; layer < GetParam().layers; layer++) {
        std::set<Source> sources;
        for (size_t i = 0; i < 4; i++) {
            const Handed & handed = all[(static_cast<size_t>(layer) * 5) + i];
            const bool by_head = handed.source == Source::key || handed.source == Source::value;
            EXPECT_EQ(handed.heads, by_head ? GetParam().kv_heads : 1);
            const int size = by_head ? GetParam().kv_heads * GetParam().head_size : GetParam().embd;
            EXPECT_EQ(handed.rows.size(), static_cast<size_t>(window_size * size));
            sources.insert(handed.source);
        }
        EXPECT_EQ(sources.size(), 4U) << "layer " << layer;
    }
    for (const Source source : { Source::residual, Source::normalised, Source::key, Source::value }) {
        EXPECT_TRUE(stream.has(source));
    }
}

// Token t is row t: of values by their content, of queries by the mask, of outputs by computing them again.
TEST_P(EveryDecoder, AttentionIsThatOfTheRows) {
    ActivationStream stream(model.get(), window_size, threads);
    Values new_values;
    for (const Handed & handed : record(stream, tokens)) {
        if (!handed.attention) {
            new_values = handed.source == Source::value ? handed.rows : new_values;
            continue;
        }
        SCOPED_TRACE("layer " + std::to_string(handed.layer));
        EXPECT_LT(test::relative_error(handed.reference_output, handed.engine_output), 2e-3);
        const size_t size = handed.value_rows.front().size();
        for (size_t t = 0; t < window_size; t++) {
            const auto row = new_values.begin() + static_cast<std::ptrdiff_t>(t * size);
            EXPECT_LT(test::relative_error(Values(row, row + static_cast<std::ptrdiff_t>(size)), handed.value_rows[t]),
                      1e-3)
                << "token " << t;
            for (size_t other = 0; other < handed.hidden[t].size(); other++) {
                EXPECT_TRUE(handed.hidden[t][other] || other <= t);
            }
            EXPECT_FALSE(handed.hidden[t][t]);
        }
    }
}

TEST_P(EveryDecoder, PassesDoNotTouchEachOther) {
    ActivationStream stream(model.get(), window_size, threads);
    const auto first = record(stream, tokens);
    Tokens others = tokens;
    std::reverse(others.begin(), others.end());
    const auto between = record(stream, others);
    EXPECT_NE(first.front().rows, between.front().rows);
    EXPECT_GT(stream.run_bare(tokens), 0.0);
    expect_same(first, record(stream, tokens));
}

std::vector<TinyModel> decoders() {
    std::vector<TinyModel> models;
    std::copy_if(test::tiny_models().begin(), test::tiny_models().end(), std::back_inserter(models),
                 [](const TinyModel & model) { return model.causal; });
    return models;
}

INSTANTIATE_TEST_SUITE_P(Activations, EveryDecoder, testing::ValuesIn(decoders()), [](const auto & given) {
    std::string name = given.param.name;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
});

TEST(Activations, AListenerThatThrowsLeavesTheStreamUsable) {
    const TinyModel & tiny = model_named("llama");
    const llama_model_ptr model = open(tiny);
    const Tokens tokens = some_tokens(tiny);
    ActivationStream stream(model.get(), window_size, threads);
    const auto before = record(stream, tokens);
    int calls = 0;
    ActivationListener listener;
    listener.on_rows = [&](int layer, Source, const TokenRows &, int64_t) {
        calls++;
        if (layer == 1) {
            throw std::logic_error("enough");
        }
    };
    EXPECT_THROW(stream.run(tokens, listener), std::logic_error);
    EXPECT_EQ(calls, 5) << "nothing after the throw";
    listener.on_rows = nullptr;
    listener.on_attention = [&](int, const Attention &) { throw std::bad_alloc(); };
    EXPECT_THROW(stream.run(tokens, listener), std::bad_alloc);
    expect_same(before, record(stream, tokens));
}

TEST(Activations, AWindowThatIsTooLongIsAnError) {
    const TinyModel & tiny = model_named("llama");
    const llama_model_ptr model = open(tiny);
    const Tokens tokens = some_tokens(tiny);
    ActivationStream stream(model.get(), window_size, threads);
    std::vector<Handed> all;
    EXPECT_THROW(stream.run(some_tokens(tiny, window_size + 1), recorder(all)), std::runtime_error);
    EXPECT_TRUE(all.empty());
    EXPECT_FALSE(record(stream, tokens).empty());
}

// An interrupt stays asked for, so this is a process of its own.
void stop_in_second_layer() {
    const TinyModel & tiny = model_named("llama");
    const llama_model_ptr model = open(tiny);
    const Tokens tokens = some_tokens(tiny);
    ActivationStream stream(model.get(), window_size, threads);
    stop_on_interrupt();
    int last_layer = -1;
    int calls = 0;
    ActivationListener listener;
    listener.on_rows = [&](int layer, Source, const TokenRows &, int64_t) {
        last_layer = layer;
        calls++;
        if (layer == 1) {
            std::raise(SIGINT);
        }
    };
    const bool stopped = !stream.run(tokens, listener) && last_layer == 1 && calls == 5;
    const bool stays_stopped = !stream.run(tokens, listener) && calls <= 6 && stream.run_bare(tokens) < 0.0;
    std::_Exit(stopped && stays_stopped ? 0 : 1);
}

TEST(ActivationsDeathTest, AnInterruptStopsThePass) {
    GTEST_FLAG_SET(death_test_style, "threadsafe"); // the engine's threads don't live through a fork
    EXPECT_EXIT(stop_in_second_layer(), testing::ExitedWithCode(0), "");
}

// They have no cache, and the engine would encode where we ask it to decode.
TEST(Activations, EncodersAreRefusedWithAWord) {
    const TinyModel & tiny = model_named("bert");
    const llama_model_ptr model = open(tiny);
    try {
        ActivationStream stream(model.get(), window_size, threads);
        record(stream, some_tokens(tiny));
        ADD_FAILURE() << "an encoder was taken";
    } catch (const std::runtime_error & error) {
        EXPECT_NE(std::string(error.what()).find("encoder"), std::string::npos) << error.what();
    }
}

// Whether the engine's own attention was computed first or not at all, what is written in its place goes on.
TEST(ActivationStream, AnOutputThatIsReplacedNeedNotBeComputed) {
    const TinyModel & tiny = model_named("llama");
    const llama_model_ptr model = open(tiny);
    ActivationStream stream(model.get(), window_size, threads);
    const Tokens tokens = some_tokens(tiny);
    const auto logits_of = [&](const ActivationListener * listener) {
        stream.forget_all();
        EXPECT_TRUE(stream.run(Pass{ tokens }, listener));
        return Values(stream.logits(0), stream.logits(0) + tiny.vocab);
    };
    float before = 0.0F;
    ActivationListener listener;
    listener.on_attention = [&](int layer, const Attention & attention) {
        auto * out = reinterpret_cast<float *>(attention.out);
        before = layer == 0 ? out[0] : before;
        std::fill_n(out, attention.queries * attention.heads * attention.value_size, 0.25F);
    };
    const Values dense = logits_of(nullptr);
    const Values replaced = logits_of(&listener);
    const float computed = before;
    listener.replaces = [](int, const Attention & attention) { return attention.mask.base != nullptr; };
    EXPECT_EQ(logits_of(&listener), replaced);
    EXPECT_NE(before, computed) << "the engine computed it all the same";
    EXPECT_NE(replaced, dense);
    EXPECT_EQ(logits_of(nullptr), dense) << "the engine's graph is as it was";
}

} // namespace
} // namespace cascade::cli
