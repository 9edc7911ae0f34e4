// What an evaluation comes to: each method's distance from the dense model, how sure it is, and which is ahead.
//
// Uncertainty is a paired block bootstrap. A window's scored tokens are cut into blocks of consecutive ones, for
// neighbours are not independent, and blocks are drawn with replacement over all windows; the same draws for every
// method, so that what makes a text easy or hard for all of them drops out of their differences. Intervals are 95 %
// percentiles. Figures that were not measured are not a number.
#pragma once

#include "evaluate/results.h"

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace cascade::evaluate {

constexpr double not_measured = std::numeric_limits<double>::quiet_NaN();

struct Interval {
    double low = not_measured;
    double high = not_measured;
};

struct MethodSummary {
    std::string label;
    int64_t broken = 0; // tokens whose KL or likelihood is no finite number; figures of tokens are then not measured
    double kl = not_measured;
    Interval kl_interval;
    double kl_median = not_measured;
    double kl_99 = not_measured;
    double kl_999 = not_measured;
    double top1 = not_measured; // share of tokens whose likeliest successor is kept
    Interval top1_interval;
    double ppl_ratio = not_measured; // to the dense model's
    Interval ppl_ratio_interval;
    double share = not_measured;       // of the past that was read
    double bytes_share = not_measured; // of the past's bytes
    std::vector<double> layer_error;   // relative to the norm of the dense output; left alone: not measured
    int64_t layers_left_alone = 0;     // in all windows
    double seconds = 0.0;
    double cost = not_measured; // seconds over those of the dense passes

    // Over questions of tasks that are in the dense model's reach.
    double retrieval = not_measured;
    Interval retrieval_interval; // Wilson
    double retrieval_dense = not_measured;
    double retrieval_tokens = not_measured; // share of the answers' tokens that are right
    double retrieval_tokens_dense = not_measured;

    std::vector<std::string> ahead_of; // methods with a higher KL, the whole interval of the difference above 0
    bool frontier = false;             // no other reads as little or less and has a lower KL
    bool frontier_bytes = false;
};

// Questions of one kind: a task and a length, or a range of depths.
struct Asked {
    std::string task;
    int64_t length = 0;
    double from = 0.0; // depths, the upper one not included but for 1
    double to = 1.0;
    int64_t questions = 0;
    double dense = not_measured;
    bool out_of_reach = false;   // the dense model itself fails: says nothing of a method
    std::vector<double> methods; // in the order of Evaluation::labels
};

struct Summary {
    int64_t windows = 0;
    int64_t tokens = 0; // scored, in all windows
    double dense_ppl = not_measured;
    Interval dense_ppl_interval;
    double dense_seconds = 0.0;
    std::vector<MethodSummary> methods; // in the order of Evaluation::labels
    std::vector<Asked> tasks;           // as first seen
    std::vector<Asked> depths;          // fifths, over the tasks in reach
};

constexpr int64_t bootstrap_block = 128;
constexpr int bootstrap_draws = 2000;
constexpr double reach = 0.8; // what the dense model must get right of a task

// The same evaluation gives the same summary, whenever and wherever. Throws std::invalid_argument where a window lacks
// a method or vectors of one window differ in length.
Summary summarise(const Evaluation & evaluation);

// Its part about retrieval: tasks, depths, and the methods' shares of right answers.
void add_retrieval(Summary & summary, std::span<const Answer> answers);

// Linear between neighbours; values in ascending order.
double quantile(std::span<const double> sorted, double fraction);

// 95 % interval of a share of which `right` of `all` were seen.
Interval wilson(int64_t right, int64_t all);

// How many of a window's scored tokens make a block: two blocks at least, where there are two tokens.
int64_t block_length(int64_t tokens);

} // namespace cascade::evaluate
