// What an evaluation measures, token by token and window by window: a method's predictions beside those of the dense
// model on the same tokens. Summaries are made of it afterwards (summary.h).
#pragma once

#include "attend/reads.h"

#include <cstdint>
#include <string>
#include <vector>

namespace cascade::evaluate {

using cascade::LayerError;
using cascade::Reads;

// Scored tokens of one window, in order: those whose prediction is judged. Token i of every vector is the same one.
struct Scores {
    std::vector<float> kl;         // of the dense distribution to the method's, in nats; never below 0
    std::vector<uint8_t> same_top; // 1: both find the same token likeliest
    std::vector<float> nll;        // the method's negative log-likelihood of the text's next token
};

struct MethodWindow {
    std::string label; // as given on the command line: "joint:0.2"
    Scores scores;
    Reads reads;
    std::vector<LayerError> layers;
    double seconds = 0.0; // the pass with this method, everything included
};

struct Window {
    int64_t index = 0;
    std::vector<float> dense_nll;
    double dense_seconds = 0.0;
    std::vector<MethodWindow> methods;
};

// One question of the retrieval suite, as the dense model and every method answered it.
struct Answer {
    std::string task; // "passkey", …
    int64_t length = 0;
    double depth = 0.0; // of what is asked for: 0 at the beginning, 1 at the end
    int64_t index = 0;
    int32_t tokens = 0;                // of the answer
    bool dense_right = false;          // every token of the answer is the dense model's likeliest
    int32_t dense_tokens_right = 0;    // that are
    std::vector<uint8_t> right;        // by method, in the order of Evaluation::labels
    std::vector<int32_t> tokens_right; // by method
};

struct Evaluation {
    std::vector<std::string> labels; // of the methods
    std::vector<Window> windows;
    std::vector<Answer> answers; // empty: no retrieval wanted
};

} // namespace cascade::evaluate
