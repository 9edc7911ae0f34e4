// The work behind `cascade eval`: windows of text and questions through the laboratory, resumable.
#pragma once

#include "cli/lab.h"
#include "evaluate/results.h"
#include "evaluate/retrieval.h"

#include <string>

namespace cascade::cli {

struct EvalOptions {
    std::string model;
    std::string text; // empty: retrieval only
    LabOptions lab;
    int64_t length = 2048;
    int64_t windows = 8;
    bool f32 = false; // the model's weights in F32: no noise of rounded activations
    bool retrieval = false;
    evaluate::RetrievalOptions questions;
    bool resume = false;
};

struct Evaluated {
    evaluate::Evaluation evaluation;
    std::string architecture;
    std::string weights; // the type of most of them
    int64_t wanted = 0;  // windows and questions
    int64_t done = 0;
    std::string kept_in; // the file of finished parts, to be removed when all is written
    bool complete() const { return done == wanted; }
};

// Throws std::runtime_error with a message for a person. An interrupt leaves what is done.
Evaluated evaluate_methods(const EvalOptions & options);

} // namespace cascade::cli
