#include "cli/weights.h"

#include "cli/engine.h"

#include "gguf.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

namespace cascade::cli {

namespace {

struct FreeGguf {
    void operator()(gguf_context * file) const { gguf_free(file); }
};

int64_t number(const llama_model * model, const std::string & key) {
    return std::strtoll(metadata(model, key.c_str()).c_str(), nullptr, 10);
}

} // namespace

std::vector<std::string> files_of(const llama_model * model, const std::string & path) {
    const auto count = static_cast<int32_t>(number(model, "split.count"));
    std::array<char, 4096> prefix = {};
    if (count < 2 || llama_split_prefix(prefix.data(), prefix.size(), path.c_str(), 0, count) <= 0) {
        return { path };
    }
    std::vector<std::string> files;
    for (int32_t i = 0; i < count; i++) {
        std::array<char, 4096> file = {};
        llama_split_path(file.data(), file.size(), prefix.data(), i, count);
        files.emplace_back(file.data());
    }
    return files;
}

double Weights::bytes_per_token(int64_t batch) const {
    const auto tokens = static_cast<double>(batch);
    return (static_cast<double>(dense) + (static_cast<double>(experts) * std::min(1.0, tokens * expert_share))) /
           tokens;
}

Weights weights_of(const llama_model * model, const std::string & path) {
    Weights weights;
    uint64_t embedding = 0;
    bool tied = true;
    for (const std::string & name : files_of(model, path)) {
        const std::unique_ptr<gguf_context, FreeGguf> file(gguf_init_from_file(name.c_str(), { true, nullptr }));
        for (int64_t i = 0; file && i < gguf_get_n_tensors(file.get()); i++) {
            const std::string_view tensor = gguf_get_tensor_name(file.get(), i);
            const uint64_t size = gguf_get_tensor_size(file.get(), i);
            (tensor.find("_exps.") != std::string_view::npos ? weights.experts : weights.dense) += size;
            embedding += tensor == "token_embd.weight" ? size : 0;
            tied = tied && tensor != "output.weight";
        }
    }
    weights.dense -= tied ? 0 : embedding;
    const std::string architecture = metadata(model, "general.architecture");
    const int64_t experts = number(model, architecture + ".expert_count");
    const int64_t used = number(model, architecture + ".expert_used_count");
    if (experts > 0 && used > 0) {
        weights.expert_share = static_cast<double>(used) / static_cast<double>(experts);
    }
    return weights;
}

} // namespace cascade::cli
