// The dense model answers the retrieval suite's questions: a form that it fails would tell nothing about a method.
#include "cli/engine.h"
#include "evaluate/retrieval.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <gtest/gtest.h>
#include <iterator>
#include <string>
#include <vector>

namespace {

using Tokens = std::vector<llama_token>;

constexpr int64_t length = 768;
constexpr int64_t questions = 5;

struct Score {
    int64_t answers = 0, right = 0; // right: every token is the likeliest one after those before it
    int64_t tokens = 0, tokens_right = 0;
};

void answer(llama_context * context, const llama_model * model, const cascade::evaluate::Question & question,
            Score & score) {
    const Tokens prompt = cascade::cli::tokenise(model, question.prompt);
    const Tokens whole = cascade::cli::tokenise(model, question.prompt + question.answer);
    const auto first =
        std::distance(whole.begin(), std::mismatch(whole.begin(), whole.end(), prompt.begin(), prompt.end()).first);
    const auto count = static_cast<int32_t>(whole.size());
    llama_batch batch = llama_batch_init(count, 0, 1);
    for (int32_t i = 0; i < count; ++i) {
        batch.token[i] = whole[static_cast<size_t>(i)];
        batch.pos[i] = i;
        batch.n_seq_id[i] = 1;
        batch.seq_id[i][0] = 0;
        batch.logits[i] = i + 1 >= first ? 1 : 0;
    }
    batch.n_tokens = count;
    llama_memory_clear(llama_get_memory(context), true);
    ASSERT_EQ(llama_decode(context, batch), 0);
    llama_batch_free(batch);
    const int32_t vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));
    int64_t right = 0;
    for (auto i = static_cast<int32_t>(first); i < count; ++i) {
        const float * logits = llama_get_logits_ith(context, i - 1);
        right += std::max_element(logits, logits + vocabulary) - logits == whole[static_cast<size_t>(i)] ? 1 : 0;
    }
    score.answers += 1;
    score.right += right == count - first ? 1 : 0;
    score.tokens += count - first;
    score.tokens_right += right;
}

TEST(RetrievalEngine, DenseModelAnswers) {
    if (!std::filesystem::exists(CASCADE_MODEL)) {
        GTEST_SKIP() << "no model " << CASCADE_MODEL;
    }
    cascade::cli::start_engine();
    const llama_model_ptr model = cascade::cli::load_model(CASCADE_MODEL, true);
    llama_context_params params = llama_context_default_params();
    params.n_ctx = params.n_batch = 1024;
    params.n_threads = params.n_threads_batch = 2;
    const llama_context_ptr context(llama_init_from_model(model.get(), params));
    ASSERT_TRUE(context);

    const auto count = [&](const std::string & text) {
        return static_cast<int64_t>(cascade::cli::tokenise(model.get(), text).size());
    };
    for (const std::string task : { "passkey", "multikey", "lookup" }) { // the others are beyond this model
        cascade::evaluate::RetrievalOptions options;
        options.tasks = { task };
        options.lengths = { length };
        options.questions = questions;
        Score score;
        for (const auto & question : cascade::evaluate::make_questions(options, count)) {
            answer(context.get(), model.get(), question, score);
        }
        EXPECT_GE(5 * score.tokens_right, 4 * score.tokens) << task << ": " << score.tokens_right;
        // About one in five first digits is lost in a list, too many for whole answers of so few questions.
        if (task != "lookup") {
            EXPECT_GE(5 * score.right, 4 * score.answers) << task << ": " << score.right;
        }
    }
}

} // namespace
