// Questions about something said far back in a long text, made up from a seed: the kinds of the RULER suite, in our
// words. A question ends where the answer begins, so that a model that only completes text can answer it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace cascade::evaluate {

struct Question {
    std::string task;
    int64_t length = 0; // tokens aimed at, answer included
    double depth = 0.0; // of what is asked for: 0 at the beginning, 1 at the end
    int64_t index = 0;  // among those of its task and length
    std::string prompt;
    // Begins with a space where one stands before it in the text; the prompt never ends in one. Its tokens are those of
    // prompt + answer after the ones that they begin with in common with the prompt's own: alone, a tokeniser may
    // cut it otherwise.
    std::string answer;
};

struct RetrievalOptions {
    std::vector<std::string> tasks; // empty: all
    std::vector<int64_t> lengths = { 1536 };
    int64_t questions = 6; // for each task and length, their depths evenly spread
    uint64_t seed = 1;
};

std::vector<std::string> retrieval_tasks();

// `count_tokens` tells the tokens of a text; a question has at most its length, and at least 95 % of it. The same
// options and counts give the same questions on every machine. Throws std::invalid_argument for an unknown task, and
// for a length in which a task's text doesn't fit.
std::vector<Question> make_questions(const RetrievalOptions & options,
                                     const std::function<int64_t(const std::string &)> & count_tokens);

} // namespace cascade::evaluate
