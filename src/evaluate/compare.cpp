#include "evaluate/compare.h"

#include "attend/exponentials.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cascade::evaluate {

namespace {

constexpr int64_t segment = 16;

int32_t top_of(const float * logits, int64_t size) {
    return static_cast<int32_t>(std::max_element(logits, logits + size) - logits);
}

// Sum of p (a - b).
double weighted_difference(const float * p, const float * a, const float * b, int64_t size) {
    constexpr int64_t lanes = 8;
    double sums[lanes] = {};
    int64_t i = 0;
    for (; i + lanes <= size; i += lanes) {
        for (int64_t lane = 0; lane < lanes; lane++) {
            sums[lane] += static_cast<double>(p[i + lane]) * (static_cast<double>(a[i + lane]) - b[i + lane]);
        }
    }
    double sum = 0.0;
    for (const double part : sums) {
        sum += part;
    }
    for (; i < size; i++) {
        sum += static_cast<double>(p[i]) * (static_cast<double>(a[i]) - b[i]);
    }
    return sum;
}

} // namespace

Comparison::Comparison(int64_t vocabulary, Team & a_team) : size(vocabulary), team(a_team) {}

// The logarithm of the sum of exponentials, and these, divided by their sum.
double Comparison::log_sum_of(const float * logits, std::vector<float> & exponentials) const {
    const int64_t segments = (size + segment - 1) / segment;
    exponentials.assign(static_cast<size_t>(segments * segment), -std::numeric_limits<float>::infinity());
    std::copy_n(logits, size, exponentials.begin());
    const float largest = attend::largest_of(exponentials.data(), segments, segment);
    const float sum = attend::exponentials(exponentials.data(), segments, segment, largest);
    for (float & value : exponentials) {
        value /= sum;
    }
    return static_cast<double>(largest) + std::log(static_cast<double>(sum));
}

void Comparison::set_dense(std::span<const float * const> logits, std::span<const int32_t> next,
                           std::vector<float> & nll) {
    count = static_cast<int64_t>(logits.size());
    following.assign(next.begin(), next.end());
    dense.resize(std::max(dense.size(), logits.size()));
    right_of_dense.assign(logits.size(), 0);
    const size_t first = nll.size();
    nll.resize(first + logits.size());
    team.run(count, [&](int64_t i) {
        const auto at = static_cast<size_t>(i);
        Row & row = dense[at];
        row.logits.assign(logits[at], logits[at] + size);
        row.log_sum = log_sum_of(logits[at], row.probabilities);
        row.top = top_of(logits[at], size);
        right_of_dense[at] = row.top == following[at] ? 1 : 0;
        nll[first + at] = static_cast<float>(row.log_sum - row.logits[static_cast<size_t>(following[at])]);
    });
}

void Comparison::compare(std::span<const float * const> logits, Scores & scores) {
    const size_t first = scores.kl.size();
    scores.kl.resize(first + logits.size());
    scores.same_top.resize(first + logits.size());
    scores.nll.resize(first + logits.size());
    right_of_method.assign(logits.size(), 0);
    team.run(count, [&](int64_t i) {
        const auto at = static_cast<size_t>(i);
        const Row & row = dense[at];
        std::vector<float> exponentials;
        const double log_sum = log_sum_of(logits[at], exponentials);
        const double difference = weighted_difference(row.probabilities.data(), row.logits.data(), logits[at], size);
        const int32_t top = top_of(logits[at], size);
        scores.kl[first + at] = static_cast<float>(std::max(difference - row.log_sum + log_sum, 0.0));
        scores.same_top[first + at] = top == row.top ? 1 : 0;
        scores.nll[first + at] = static_cast<float>(log_sum - logits[at][following[at]]);
        right_of_method[at] = top == following[at] ? 1 : 0;
    });
}

} // namespace cascade::evaluate
