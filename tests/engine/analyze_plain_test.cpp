// `cascade analyze` to the token: Definition 1 on a real model's residual stream, by naive loops in double that share
// nothing with the program but the model, its text and the number of threads.
#include "ggml-backend.h"
#include "llama-cpp.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace {

using Rows = std::vector<float>;
using Set = std::vector<int>;

constexpr int window_size = 512;
constexpr int threads = 2;
constexpr double tau = 0.30;
constexpr double undecidable = 2e-6; // so near to the threshold, float and double may differ

std::string read_text() {
    std::ifstream file(CASCADE_TEXT, std::ios::binary);
    return { std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>() };
}

std::string output_of(const std::string & command) {
    std::string text;
    const std::unique_ptr<FILE, int (*)(FILE *)> pipe(popen(command.c_str(), "r"), pclose);
    std::array<char, 4096> part = {};
    for (size_t count = 0; pipe && (count = std::fread(part.data(), 1, part.size(), pipe.get())) > 0;) {
        text.append(part.data(), count);
    }
    return text;
}

// The program's sets, layer by layer.
std::vector<Set> program_sets() {
    const std::string command = "XDG_CACHE_HOME='" + testing::TempDir() +
                                "' '" CASCADE_PROGRAM "' analyze -m '" CASCADE_MODEL "' -f '" CASCADE_TEXT
                                "' -c 512 --tau 0.30 --methods threshold --copy-samples 0 -t 2 -o json";
    const auto analysis = nlohmann::json::parse(output_of(command), nullptr, false);
    if (analysis.is_discarded()) {
        return {};
    }
    return analysis.at("sample").at("sets").at(0).at("layers").get<std::vector<Set>>();
}

// What enters each layer, by the engine's names: "embd" the first, "l_out-N" the one after N.
class Residuals {
  public:
    Residuals() {
        ggml_backend_load_all();
        llama_log_set([](ggml_log_level, const char *, void *) {}, nullptr);
        llama_model_params model_params = llama_model_default_params();
        model_params.n_gpu_layers = 0;
        model.reset(llama_model_load_from_file(CASCADE_MODEL, model_params));
        llama_context_params params = llama_context_default_params();
        params.n_ctx = params.n_batch = params.n_ubatch = window_size;
        params.n_threads = params.n_threads_batch = threads;
        params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
        params.cb_eval = on_node;
        params.cb_eval_user_data = this;
        context.reset(llama_init_from_model(model.get(), params));
    }

    bool run() {
        std::vector<llama_token> tokens = first_tokens();
        return tokens.size() == window_size &&
               llama_decode(context.get(), llama_batch_get_one(tokens.data(), window_size)) == 0;
    }

    int layers() const { return llama_model_n_layer(model.get()); }
    int size() const { return llama_model_n_embd(model.get()); }
    const Rows & of(int layer) const { return rows.at(layer == 0 ? "embd" : "l_out-" + std::to_string(layer - 1)); }

  private:
    std::vector<llama_token> first_tokens() const {
        const std::string text = read_text();
        const llama_vocab * vocab = llama_model_get_vocab(model.get());
        std::vector<llama_token> tokens(text.size());
        tokens.resize(static_cast<size_t>(std::max(
            0, llama_tokenize(vocab, text.data(), static_cast<int32_t>(text.size()), tokens.data(),
                              static_cast<int32_t>(tokens.size()), /*add_special*/ false, /*parse_special*/ false))));
        tokens.resize(std::min<size_t>(tokens.size(), window_size));
        if (llama_vocab_get_add_bos(vocab)) {
            tokens.front() = llama_vocab_bos(vocab);
        }
        return tokens;
    }

    static bool on_node(ggml_tensor * tensor, bool ask, void * self) {
        const std::string name = tensor->name;
        if (name != "embd" && !name.starts_with("l_out-")) {
            return false;
        }
        if (!ask && tensor->type == GGML_TYPE_F32 && tensor->ne[1] == window_size) {
            Rows & copy = static_cast<Residuals *>(self)->rows[name];
            copy.resize(static_cast<size_t>(ggml_nelements(tensor)));
            ggml_backend_tensor_get(tensor, copy.data(), 0, ggml_nbytes(tensor));
        }
        return true;
    }

    llama_model_ptr model;
    llama_context_ptr context;
    std::map<std::string, Rows> rows;
};

// For each token, its largest absolute cosine to any earlier one.
std::vector<double> largest_similarities(const Rows & rows, size_t size) {
    const size_t tokens = rows.size() / size;
    const auto product = [&](size_t a, size_t b) {
        double sum = 0.0;
        for (size_t i = 0; i < size; i++) {
            sum += static_cast<double>(rows[(a * size) + i]) * static_cast<double>(rows[(b * size) + i]);
        }
        return sum;
    };
    std::vector<double> norms;
    norms.reserve(tokens);
    for (size_t t = 0; t < tokens; t++) {
        norms.push_back(std::sqrt(product(t, t)));
    }
    std::vector<double> largest(tokens, 0.0);
    for (size_t t = 0; t < tokens; t++) {
        for (size_t other = 0; other < t; other++) {
            largest[t] = std::max(largest[t], std::fabs(product(t, other)) / (norms[t] * norms[other]));
        }
    }
    return largest;
}

TEST(AnalyzePlain, ChoosesTheSameTokensInEveryLayer) {
    if (!std::filesystem::exists(CASCADE_MODEL)) {
        GTEST_SKIP() << "the model isn't there: scripts/get-models fetches it";
    }
    const std::vector<Set> sets = program_sets();
    Residuals residuals;
    ASSERT_TRUE(residuals.run());
    ASSERT_EQ(sets.size(), static_cast<size_t>(residuals.layers()));
    const double threshold = 1.0 - (tau * tau);
    int doubtful = 0;
    int different = 0;
    int representatives = 0;
    for (int layer = 0; layer < residuals.layers(); layer++) {
        const Set & set = sets[static_cast<size_t>(layer)];
        const auto largest = largest_similarities(residuals.of(layer), static_cast<size_t>(residuals.size()));
        ASSERT_EQ(largest.size(), static_cast<size_t>(window_size));
        for (int token = 0; token < window_size; token++) {
            const double similarity = largest[static_cast<size_t>(token)];
            const bool expected = similarity < threshold;
            const bool chosen = std::binary_search(set.begin(), set.end(), token);
            const bool doubt = std::fabs(similarity - threshold) < undecidable;
            representatives += expected ? 1 : 0;
            doubtful += doubt ? 1 : 0;
            different += chosen != expected ? 1 : 0;
            EXPECT_TRUE(chosen == expected || doubt)
                << "layer " << layer << ", token " << token << ": similarity " << similarity;
        }
    }
    EXPECT_LE(doubtful, 2);
    RecordProperty("doubtful", doubtful);
    std::printf("%d representatives in %d layers; %d tokens too near to the threshold to tell, %d differ\n",
                representatives, residuals.layers(), doubtful, different);
}

} // namespace
