#include "cli/text_windows.h"

#include "cli/engine.h"

#include <algorithm>
#include <fmt/format.h>
#include <stdexcept>

namespace cascade::cli {

TextWindows::TextWindows(const llama_model * model, const std::string & path)
    : of(model), text(tokenise(model, read_text(path))) {}

int64_t TextWindows::count(int64_t length, int64_t wanted) const {
    const int32_t trained = llama_model_n_ctx_train(of);
    if (length > trained) {
        throw std::runtime_error(
            fmt::format("the model was trained on {} tokens: give -c {} or less", trained, trained));
    }
    const auto available = static_cast<int64_t>(text.size()) / length;
    if (available == 0) {
        throw std::runtime_error(fmt::format("the text has {} tokens, fewer than one window of {}: give a longer text "
                                             "or a smaller -c",
                                             text.size(), length));
    }
    return std::min(available, wanted);
}

Tokens TextWindows::window(int64_t length, int64_t index) const {
    const auto first = text.begin() + (index * length);
    Tokens tokens(first, first + length);
    const llama_vocab * vocab = llama_model_get_vocab(of);
    if (llama_vocab_get_add_bos(vocab)) {
        tokens.front() = llama_vocab_bos(vocab);
    }
    return tokens;
}

} // namespace cascade::cli
