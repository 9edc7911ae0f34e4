#include "cli/engine.h"

#include "cli/interrupt.h"

#include "ggml-backend.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <stdexcept>

namespace cascade::cli {

namespace {

void print_errors(ggml_log_level level, const char * text, void *) {
    if (level == GGML_LOG_LEVEL_ERROR && !interrupted()) { // being stopped is no failure
        std::fputs(text, stderr);
    }
}

void print_nothing(ggml_log_level, const char *, void *) {}

// The engine looks for its backends beside the program; ours may stand elsewhere than the engine's libraries.
void load_backends() {
    ggml_backend_load_all();
    Dl_info library = {};
    if (ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU) == nullptr &&
        dladdr(reinterpret_cast<void *>(&ggml_backend_load_all), &library) != 0) {
        ggml_backend_load_all_from_path(std::filesystem::path(library.dli_fname).parent_path().c_str());
    }
    if (ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU) == nullptr) {
        throw std::runtime_error("the engine's CPU backend is not beside its libraries; set GGML_BACKEND_PATH to it");
    }
}

} // namespace

void log_errors_only() { llama_log_set(print_errors, nullptr); }

void log_nothing() { llama_log_set(print_nothing, nullptr); }

void start_engine() {
    setenv("GGML_CASCADE", "off", 0); // where GGML_BACKEND_PATH loads our own plugin, the engine is still the bare one
    log_errors_only();
    load_backends();
    llama_backend_init();
}

llama_model_ptr load_model(const std::string & path, bool repack) {
    llama_model_params params = llama_model_default_params();
    params.n_gpu_layers = 0;
    params.use_extra_bufts = repack;
    llama_model_ptr model(llama_model_load_from_file(path.c_str(), params));
    if (!model) {
        throw std::runtime_error("can't load the model '" + path + "': give a GGUF file with -m");
    }
    return model;
}

std::string metadata(const llama_model * model, const char * key) {
    char value[128] = {};
    return llama_model_meta_val_str(model, key, value, sizeof(value)) > 0 ? value : "";
}

std::string file_name(const std::string & path) { return std::filesystem::path(path).filename().string(); }

std::string read_text(const std::string & path) {
    std::ifstream file(path, std::ios::binary);
    std::string text{ std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>() };
    if (!file || text.empty()) {
        throw std::runtime_error("can't read the text '" + path + "': give a text file with -f");
    }
    return text;
}

std::vector<llama_token> tokenise(const llama_model * model, const std::string & text) {
    const llama_vocab * vocab = llama_model_get_vocab(model);
    if (llama_vocab_type(vocab) == LLAMA_VOCAB_TYPE_NONE) {
        throw std::runtime_error("the model has no tokeniser");
    }
    if (text.size() > std::numeric_limits<int32_t>::max() - 8) {
        throw std::runtime_error("the text is longer than 2 GiB: give a part of it");
    }
    const auto length = static_cast<int32_t>(text.size());
    std::vector<llama_token> tokens(text.size() + 8);
    const int32_t count =
        llama_tokenize(vocab, text.data(), length, tokens.data(), static_cast<int32_t>(tokens.size()), false, false);
    if (count < 0) {
        throw std::runtime_error("the text can't be tokenised");
    }
    tokens.resize(static_cast<size_t>(count));
    return tokens;
}

std::string piece(const llama_model * model, llama_token token) {
    char text[256];
    const int32_t length =
        llama_token_to_piece(llama_model_get_vocab(model), token, text, static_cast<int32_t>(sizeof(text)), 0, true);
    return { text, static_cast<size_t>(length > 0 ? length : 0) };
}

} // namespace cascade::cli
