// The laboratory on tiny models: what must be equal is, what is scored is the text's, and no run leaves anything
// behind.
#include "cli/lab.h"

#include "cli/engine.h"
#include "support/tiny_models.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <gtest/gtest.h>
#include <numeric>
#include <stdexcept>
#include <unistd.h>

namespace cascade::test {
void PrintTo(const TinyModel & model, std::ostream * out) { *out << model.name; }
} // namespace cascade::test

namespace cascade::cli {
namespace {

using evaluate::MethodWindow;
using evaluate::Window;
using test::TinyModel;

constexpr int64_t block = 16;
constexpr int64_t exact_window = 8;
constexpr int64_t length = 60; // no multiple of the block
constexpr int64_t from = 12;   // inside the first block

const TinyModel & model_named(const std::string & name) {
    const auto & models = test::tiny_models();
    return *std::find_if(models.begin(), models.end(), [&](const TinyModel & model) { return model.name == name; });
}

llama_model_ptr open(const TinyModel & model) {
    start_engine();
    const std::string path = testing::TempDir() + "lab_test_" + std::to_string(::getpid()) + ".gguf";
    test::write_tiny_model(model, path);
    llama_model_ptr opened = load_model(path, true);
    std::remove(path.c_str());
    return opened;
}

Tokens some_tokens(const TinyModel & model, int64_t count = length, int64_t shift = 0) {
    Tokens tokens;
    for (int64_t i = shift; i < count + shift; i++) {
        tokens.push_back(static_cast<llama_token>((7 + (i * i * 5) + i) % model.vocab));
    }
    return tokens;
}

LabOptions options_of(const std::vector<std::string> & methods) {
    LabOptions options;
    for (const std::string & method : methods) {
        options.methods.push_back(parse_method(method));
    }
    options.context = 80;
    options.block = block;
    options.window = exact_window;
    options.threads = 2;
    return options;
}

Window run(Lab & lab, const Tokens & tokens, int64_t scored_from = from, evaluate::Answer * answer = nullptr) {
    Window window;
    EXPECT_TRUE(lab.run(tokens, scored_from, [](int64_t, const std::string &) {}, window, answer));
    return window;
}

double mean_of(const std::vector<float> & values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

void expect_exact(const MethodWindow & method, const std::vector<float> & dense_nll) {
    const size_t count = dense_nll.size();
    EXPECT_EQ(method.scores.kl, std::vector<float>(count, 0.0F)) << method.label;
    EXPECT_EQ(method.scores.same_top, std::vector<uint8_t>(count, 1)) << method.label;
    EXPECT_EQ(method.scores.nll, dense_nll) << method.label;
}

void expect_same(const MethodWindow & a, const MethodWindow & b) {
    EXPECT_EQ(a.label, b.label);
    EXPECT_EQ(a.scores.kl, b.scores.kl) << a.label;
    EXPECT_EQ(a.scores.same_top, b.scores.same_top) << a.label;
    EXPECT_EQ(a.scores.nll, b.scores.nll) << a.label;
    EXPECT_EQ(a.reads.past, b.reads.past) << a.label;
    EXPECT_EQ(a.reads.read, b.reads.read) << a.label;
    ASSERT_EQ(a.layers.size(), b.layers.size());
    for (size_t i = 0; i < a.layers.size(); i++) {
        EXPECT_EQ(a.layers[i].difference, b.layers[i].difference) << a.label << " layer " << i;
        EXPECT_EQ(a.layers[i].left_alone, b.layers[i].left_alone);
    }
}

// Logits of a plain program: the whole text, block by block, in a context of its own.
std::vector<std::vector<double>> plain_log_probabilities(llama_model * model, Tokens tokens) {
    llama_context_params params = llama_context_default_params();
    params.n_ctx = 256;
    params.n_batch = params.n_ubatch = static_cast<uint32_t>(block);
    params.n_threads = params.n_threads_batch = 2;
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
    const llama_context_ptr context(llama_init_from_model(model, params));
    const int vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));
    std::vector<std::vector<double>> result;
    for (int32_t first = 0; first < static_cast<int32_t>(tokens.size()); first += block) {
        const int32_t count = std::min(static_cast<int32_t>(block), static_cast<int32_t>(tokens.size()) - first);
        llama_batch batch = llama_batch_init(count, 0, 1);
        batch.n_tokens = count;
        for (int32_t i = 0; i < count; i++) {
            batch.token[i] = tokens[static_cast<size_t>(first + i)];
            batch.pos[i] = first + i;
            batch.n_seq_id[i] = 1;
            batch.seq_id[i][0] = 0;
            batch.logits[i] = 1;
        }
        EXPECT_EQ(llama_decode(context.get(), batch), 0);
        for (int32_t i = 0; i < count; i++) {
            const float * logits = llama_get_logits_ith(context.get(), i);
            double sum = 0.0;
            for (int k = 0; k < vocabulary; k++) {
                sum += std::exp(static_cast<double>(logits[k]));
            }
            std::vector<double> row;
            for (int k = 0; k < vocabulary; k++) {
                row.push_back(logits[k] - std::log(sum));
            }
            result.push_back(std::move(row));
        }
        llama_batch_free(batch);
    }
    return result;
}

class EveryDecoder : public testing::TestWithParam<TinyModel> {
  protected:
    EveryDecoder() : model(open(GetParam())), tokens(some_tokens(GetParam())) {}

    llama_model_ptr model;
    Tokens tokens;
};

TEST_P(EveryDecoder, ExactIsExactAndScoresAreThoseOfAPlainPass) {
    Lab lab(model.get(), options_of({ "exact", "joint:eps=0", "streaming:0.1:window=64" }));
    const Window window = run(lab, tokens);
    const auto plain = plain_log_probabilities(model.get(), tokens);
    ASSERT_EQ(window.dense_nll.size(), static_cast<size_t>(length - 1 - from));
    for (size_t i = 0; i < window.dense_nll.size(); i++) {
        const auto at = static_cast<size_t>(from) + i;
        EXPECT_NEAR(window.dense_nll[i], -plain[at][static_cast<size_t>(tokens[at + 1])], 1e-5) << "token " << at;
    }
    ASSERT_EQ(window.methods.size(), 3U);
    for (const MethodWindow & method : window.methods) {
        expect_exact(method, window.dense_nll);
    }
}

// Everything of the past is read: other sums of the same attention. Where experts are near a tie, that is another one.
TEST_P(EveryDecoder, ABudgetOfAllIsDenseAttention) {
    Lab lab(model.get(), options_of({ "streaming:1", "joint:1", "blocks:1", "proportional:1", "snapkv:1" }));
    for (const MethodWindow & method : run(lab, tokens).methods) {
        const float largest = *std::max_element(method.scores.kl.begin(), method.scores.kl.end());
        EXPECT_LT(GetParam().experts > 0 ? mean_of(method.scores.kl) : largest, 1e-5) << method.label;
        EXPECT_EQ(method.reads.read, method.reads.past);
    }
}

TEST_P(EveryDecoder, LayersThatAreNotPlainlyCausalAreLeftAlone) {
    Lab lab(model.get(), options_of({ "streaming:0.1" }));
    const Window window = run(lab, tokens);
    const MethodWindow & method = window.methods.front();
    const TinyModel & tiny = GetParam();
    ASSERT_EQ(static_cast<int>(method.layers.size()), tiny.layers);
    const bool never = tiny.alibi || tiny.sinks;
    const auto alone = std::count_if(method.layers.begin(), method.layers.end(),
                                     [](const evaluate::LayerError & layer) { return layer.left_alone; });
    EXPECT_EQ(alone, never ? tiny.layers : (tiny.sliding_window == 0 ? 0 : alone));
    EXPECT_EQ(alone > 0, never || tiny.sliding_window > 0);
    if (never) {
        expect_exact(method, window.dense_nll);
        EXPECT_EQ(method.reads.past, 0.0);
        return;
    }
    EXPECT_LT(alone, tiny.layers) << "global layers are taken";
    EXPECT_GT(mean_of(method.scores.kl), 0.0);
    // Blocks from 16, 32 and 48 on, beyond the window
    EXPECT_EQ(method.reads.past, static_cast<double>((tiny.layers - alone) * tiny.kv_heads * (8 + 24 + 40)));
    EXPECT_EQ(method.reads.read, static_cast<double>((tiny.layers - alone) * tiny.kv_heads * (1 + 2 + 4)));
    for (const evaluate::LayerError & layer : method.layers) {
        EXPECT_EQ(layer.left_alone, layer.norm == 0.0);
    }
}

std::vector<TinyModel> decoders() {
    std::vector<TinyModel> models;
    std::copy_if(test::tiny_models().begin(), test::tiny_models().end(), std::back_inserter(models),
                 [](const TinyModel & model) { return model.causal; });
    return models;
}

INSTANTIATE_TEST_SUITE_P(Lab, EveryDecoder, testing::ValuesIn(decoders()), [](const auto & given) {
    std::string name = given.param.name;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
});

const std::vector<std::string> many = { "exact",
                                        "joint:0.3",
                                        "joint:0.3:window=20",
                                        "copy:tau=0.7",
                                        "copy-earlier:tau=0.7",
                                        "representatives:tau=0.7:window=5",
                                        "representatives:tau=0.7:set=random",
                                        "refine:0.3:source=value",
                                        "proportional:0.3:source=residual",
                                        "random:0.3:window=0",
                                        "snapkv:0.3:window=33",
                                        "joint:eps=0.06:source=normalised",
                                        "quest:0.3",
                                        "sampled:0.3",
                                        "oracle:0.3" };

class LabTest : public testing::Test {
  protected:
    const TinyModel & tiny = model_named("llama");
    llama_model_ptr model = open(tiny);
};

TEST_F(LabTest, NothingIsLeftBehindBetweenTexts) {
    Lab lab(model.get(), options_of(many));
    const Tokens a = some_tokens(tiny);
    const Tokens b = some_tokens(tiny, 71, 13);
    const Window first = run(lab, a);
    const Window other = run(lab, b);
    const Window again = run(lab, a);
    EXPECT_EQ(first.dense_nll, again.dense_nll);
    EXPECT_NE(first.dense_nll, other.dense_nll);
    for (size_t i = 0; i < many.size(); i++) {
        expect_same(first.methods[i], again.methods[i]);
    }
}

TEST_F(LabTest, MethodsTogetherAreTheMethodsAlone) {
    Lab all(model.get(), options_of(many));
    const Tokens tokens = some_tokens(tiny);
    const Window together = run(all, tokens);
    for (size_t i = 0; i < many.size(); i++) {
        Lab alone(model.get(), options_of({ many[i] }));
        expect_same(run(alone, tokens).methods.front(), together.methods[i]);
    }
    EXPECT_EQ(labels_of(options_of(many)), many);
}

// A method that reads less is not the dense model: the other tests would otherwise be empty.
TEST_F(LabTest, MethodsChangePredictionsWhereTheyReadLess) {
    Lab lab(model.get(), options_of(many));
    const Window window = run(lab, some_tokens(tiny));
    for (size_t i = 1; i < many.size(); i++) {
        EXPECT_GT(mean_of(window.methods[i].scores.kl), 1e-6) << many[i];
        EXPECT_LT(window.methods[i].reads.read, window.methods[i].reads.past) << many[i];
    }
}

// A block of one token at the end, a text of one block, of one token more, of two tokens.
TEST_F(LabTest, TextsOfAnyLength) {
    Lab lab(model.get(), options_of({ "exact", "joint:0.3", "copy:tau=0.7", "streaming:0.3", "snapkv:0.3" }));
    for (const int64_t count : { 80, 65, 49, 47, 33, 17, 16, 15, 2 }) {
        SCOPED_TRACE(testing::Message() << count << " tokens");
        try {
            const Window window = run(lab, some_tokens(tiny, count), 0);
            ASSERT_EQ(window.dense_nll.size(), static_cast<size_t>(count - 1));
            expect_exact(window.methods.front(), window.dense_nll);
            for (const MethodWindow & method : window.methods) {
                EXPECT_EQ(method.scores.kl.size(), static_cast<size_t>(count - 1)) << method.label;
                EXPECT_EQ(method.scores.nll.size(), static_cast<size_t>(count - 1)) << method.label;
            }
        } catch (const std::exception & error) {
            ADD_FAILURE() << error.what();
        }
    }
}

TEST_F(LabTest, ScoresBeginWhereTheyAreAskedFor) {
    Lab lab(model.get(), options_of({ "exact", "streaming:0.2" }));
    const Tokens tokens = some_tokens(tiny);
    const Window all = run(lab, tokens, 0);
    for (const int64_t first : { 1, 15, 16, 17, 30, 48, 57, 58 }) {
        const Window part = run(lab, tokens, first);
        // The engine's last product has other sums where it has other rows
        const auto expect_tail = [&](const std::vector<float> & whole, const std::vector<float> & end) {
            ASSERT_EQ(end.size() + static_cast<size_t>(first), whole.size());
            for (size_t i = 0; i < end.size(); i++) {
                EXPECT_NEAR(end[i], whole[i + static_cast<size_t>(first)], 1e-4) << "from " << first;
            }
        };
        expect_tail(all.dense_nll, part.dense_nll);
        expect_tail(all.methods[1].scores.kl, part.methods[1].scores.kl);
        expect_tail(all.methods[1].scores.nll, part.methods[1].scores.nll);
        EXPECT_EQ(part.methods[1].reads.read, all.methods[1].reads.read) << "whatever is scored";
    }
}

TEST_F(LabTest, AnswersCountTheTokensThatAreRight) {
    Lab lab(model.get(), options_of({ "exact", "streaming:0.1" }));
    Tokens tokens = some_tokens(tiny);
    // The dense model's own likeliest tokens as the last ones: it answers right, by construction
    constexpr size_t given = 54;
    for (size_t i = given; i < tokens.size(); i++) {
        const auto row = plain_log_probabilities(
                             model.get(), Tokens(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(i)))
                             .back();
        tokens[i] = static_cast<llama_token>(std::max_element(row.begin(), row.end()) - row.begin());
    }
    evaluate::Answer answer;
    const Window window = run(lab, tokens, given - 1, &answer);
    EXPECT_EQ(answer.dense_tokens_right, 6);
    ASSERT_EQ(answer.tokens_right.size(), 2U);
    EXPECT_EQ(answer.tokens_right[0], 6);
    const auto & same = window.methods[1].scores.same_top;
    EXPECT_EQ(answer.tokens_right[1], std::count(same.begin(), same.end(), 1));
}

TEST_F(LabTest, NoiseIsTheOtherFormOfTheSameAttention) {
    LabOptions options = options_of({ "streaming:0.2" });
    options.noise = true;
    ASSERT_EQ(labels_of(options).size(), 2U);
    Lab lab(model.get(), options);
    const Window window = run(lab, some_tokens(tiny));
    ASSERT_EQ(window.methods.size(), 2U);
    EXPECT_EQ(window.methods.back().label, labels_of(options).back());
    const MethodWindow & noise = window.methods.back();
    EXPECT_EQ(noise.scores.kl.size(), window.dense_nll.size());
    EXPECT_LT(mean_of(noise.scores.kl), 1e-4);
    EXPECT_LT(mean_of(noise.scores.kl), mean_of(window.methods.front().scores.kl));
}

} // namespace
} // namespace cascade::cli
