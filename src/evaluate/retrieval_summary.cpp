// What answers to the retrieval suite come to.
#include "evaluate/summary.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace cascade::evaluate {

namespace {

constexpr int depth_ranges = 5;

// Right answers of the dense model and of each method, and how many were asked for.
struct Count {
    explicit Count(size_t methods) : right(methods, 0), tokens_right(methods, 0) {}

    void add(const Answer & answer) {
        questions++;
        tokens += answer.tokens;
        dense += answer.dense_right ? 1 : 0;
        dense_tokens += answer.dense_tokens_right;
        for (size_t m = 0; m < right.size(); m++) {
            right[m] += answer.right[m] != 0 ? 1 : 0;
            tokens_right[m] += answer.tokens_right[m];
        }
    }

    int64_t questions = 0;
    int64_t tokens = 0;
    int64_t dense = 0;
    int64_t dense_tokens = 0;
    std::vector<int64_t> right;
    std::vector<int64_t> tokens_right;
};

double share(int64_t part, int64_t whole) {
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : not_measured;
}

Asked asked(const Count & count) {
    Asked result;
    result.questions = count.questions;
    result.dense = share(count.dense, count.questions);
    for (const int64_t right : count.right) {
        result.methods.push_back(share(right, count.questions));
    }
    return result;
}

using Kind = std::pair<std::string, int64_t>;

std::vector<Asked> tasks_of(std::span<const Answer> answers, size_t methods) {
    std::vector<Kind> kinds;
    std::vector<Count> counts;
    for (const Answer & answer : answers) {
        const auto place = static_cast<size_t>(
            std::find(kinds.begin(), kinds.end(), Kind{ answer.task, answer.length }) - kinds.begin());
        if (place == kinds.size()) {
            kinds.emplace_back(answer.task, answer.length);
            counts.emplace_back(methods);
        }
        counts[place].add(answer);
    }
    std::vector<Asked> tasks;
    for (size_t i = 0; i < kinds.size(); i++) {
        Asked task = asked(counts[i]);
        std::tie(task.task, task.length) = kinds[i];
        task.out_of_reach = task.dense < reach;
        tasks.push_back(std::move(task));
    }
    return tasks;
}

std::vector<Asked> depths_of(const std::vector<Count> & counts) {
    std::vector<Asked> depths;
    for (size_t i = 0; i < counts.size(); i++) {
        if (counts[i].questions > 0) {
            Asked range = asked(counts[i]);
            range.from = static_cast<double>(i) / depth_ranges;
            range.to = static_cast<double>(i + 1) / depth_ranges;
            depths.push_back(std::move(range));
        }
    }
    return depths;
}

size_t depth_range(double depth) {
    return std::isnan(depth) ? 0 : static_cast<size_t>(std::clamp(depth * depth_ranges, 0.0, depth_ranges - 1.0));
}

} // namespace

Interval wilson(int64_t right, int64_t all) {
    if (all == 0) {
        return {};
    }
    constexpr double z = 1.959963984540054;
    const auto n = static_cast<double>(all);
    const double p = static_cast<double>(right) / n;
    const double middle = p + (z * z / (2.0 * n));
    const double half = z * std::sqrt((p * (1.0 - p) / n) + (z * z / (4.0 * n * n)));
    const double scale = 1.0 + (z * z / n);
    return { right == 0 ? 0.0 : (middle - half) / scale, right == all ? 1.0 : (middle + half) / scale };
}

void add_retrieval(Summary & summary, std::span<const Answer> answers) {
    const size_t methods = summary.methods.size();
    for (const Answer & answer : answers) {
        if (answer.right.size() != methods || answer.tokens_right.size() != methods) {
            throw std::invalid_argument("an answer to '" + answer.task + "' is of another number of methods");
        }
    }
    summary.tasks = tasks_of(answers, methods);
    std::set<Kind> kept;
    for (const Asked & task : summary.tasks) {
        if (!task.out_of_reach) {
            kept.emplace(task.task, task.length);
        }
    }
    Count all(methods);
    std::vector<Count> by_depth(depth_ranges, Count(methods));
    for (const Answer & answer : answers) {
        if (kept.contains({ answer.task, answer.length })) {
            all.add(answer);
            by_depth[depth_range(answer.depth)].add(answer);
        }
    }
    summary.depths = depths_of(by_depth);
    for (size_t m = 0; m < methods; m++) {
        MethodSummary & method = summary.methods[m];
        method.retrieval = share(all.right[m], all.questions);
        method.retrieval_interval = wilson(all.right[m], all.questions);
        method.retrieval_dense = share(all.dense, all.questions);
        method.retrieval_tokens = share(all.tokens_right[m], all.tokens);
        method.retrieval_tokens_dense = share(all.dense_tokens, all.tokens);
    }
}

} // namespace cascade::evaluate
