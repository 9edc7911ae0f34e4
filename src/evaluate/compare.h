// Predictions beside the dense model's, token by token.
#pragma once

#include "cascade/team.h"
#include "evaluate/results.h"

#include <cstdint>
#include <span>
#include <vector>

namespace cascade::evaluate {

class Comparison {
  public:
    Comparison(int64_t vocabulary, Team & a_team);

    // The dense model's logits of some tokens, one row each, and the token that follows each in the text. Kept until
    // the next call. Adds their negative log-likelihoods.
    void set_dense(std::span<const float * const> logits, std::span<const int32_t> next, std::vector<float> & nll);

    // A method's logits of the same tokens.
    void compare(std::span<const float * const> logits, Scores & scores);

    // Of the last tokens compared, or of the dense model: whether the next token is the likeliest.
    const std::vector<uint8_t> & dense_right() const { return right_of_dense; }
    const std::vector<uint8_t> & right() const { return right_of_method; }

  private:
    struct Row {
        std::vector<float> logits;
        std::vector<float> probabilities; // in whole segments
        double log_sum = 0.0;
        int32_t top = 0;
    };

    double log_sum_of(const float * logits, std::vector<float> & exponentials) const;

    int64_t size;
    Team & team;
    std::vector<Row> dense;
    int64_t count = 0; // rows in use
    std::vector<int32_t> following;
    std::vector<uint8_t> right_of_dense;
    std::vector<uint8_t> right_of_method;
};

} // namespace cascade::evaluate
