// A text in the model's tokens, cut into windows.
#pragma once

#include "llama-cpp.h"

#include <string>
#include <vector>

namespace cascade::cli {

using Tokens = std::vector<llama_token>;

class TextWindows {
  public:
    // Throws std::runtime_error with a message for a person.
    TextWindows(const llama_model * model, const std::string & path);

    // How many of this length there are, `wanted` at most. Throws where there is none, or where the model can't take
    // as many tokens.
    int64_t count(int64_t length, int64_t wanted) const;

    // As llama-perplexity cuts it: where the model wants a first token of its own, it takes the place of the first.
    Tokens window(int64_t length, int64_t index) const;

  private:
    const llama_model * of;
    Tokens text;
};

} // namespace cascade::cli
