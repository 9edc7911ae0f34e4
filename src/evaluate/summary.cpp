#include "evaluate/summary.h"

#include "evaluate/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

namespace cascade::evaluate {

namespace {

double ratio(double part, double whole) { return whole > 0.0 ? part / whole : not_measured; }

// Every window with its methods in the order of the labels, whatever order they came in.
Evaluation in_order(const Evaluation & evaluation) {
    Evaluation sorted{ evaluation.labels, {}, {} };
    for (const Window & window : evaluation.windows) {
        Window copy{ window.index, window.dense_nll, window.dense_seconds, {} };
        for (const std::string & label : evaluation.labels) {
            const auto found = std::find_if(window.methods.begin(), window.methods.end(),
                                            [&](const MethodWindow & method) { return method.label == label; });
            if (found == window.methods.end()) {
                throw std::invalid_argument("a window lacks the method '" + label + "'");
            }
            const Scores & scores = found->scores;
            const size_t tokens = window.dense_nll.size();
            if (scores.kl.size() != tokens || scores.same_top.size() != tokens || scores.nll.size() != tokens) {
                throw std::invalid_argument("a window's scores of '" + label + "' are of another length");
            }
            copy.methods.push_back(*found);
        }
        sorted.windows.push_back(std::move(copy));
    }
    return sorted;
}

template <typename Value>
std::vector<double> each(const std::vector<Sums> & draws, Value value) {
    std::vector<double> values(draws.size());
    std::transform(draws.begin(), draws.end(), values.begin(), value);
    return values;
}

// All windows' KL of a method, ascending.
std::vector<double> sorted_kl(const Evaluation & evaluation, size_t method) {
    std::vector<double> values;
    for (const Window & window : evaluation.windows) {
        const std::vector<float> & kl = window.methods[method].scores.kl;
        values.insert(values.end(), kl.begin(), kl.end());
    }
    std::sort(values.begin(), values.end());
    return values;
}

int64_t broken_tokens(const Evaluation & evaluation, size_t method) {
    int64_t broken = 0;
    for (const Window & window : evaluation.windows) {
        const Scores & scores = window.methods[method].scores;
        for (size_t i = 0; i < scores.kl.size(); i++) {
            broken += std::isfinite(scores.kl[i]) && std::isfinite(scores.nll[i]) ? 0 : 1;
        }
    }
    return broken;
}

void add_quantiles(MethodSummary & summary, const std::vector<double> & sorted) {
    summary.kl_median = quantile(sorted, 0.5);
    summary.kl_99 = quantile(sorted, 0.99);
    summary.kl_999 = quantile(sorted, 0.999);
}

void add_means(MethodSummary & summary, const BlockSums & blocks, double tokens, double dense_nll) {
    Sums sums;
    for (const Sums & block : blocks) {
        sums.kl += block.kl;
        sums.same_top += block.same_top;
        sums.nll += block.nll;
    }
    summary.kl = sums.kl / tokens;
    summary.top1 = sums.same_top / tokens;
    summary.ppl_ratio = std::exp((sums.nll - dense_nll) / tokens);
}

void add_intervals(MethodSummary & summary, const std::vector<Sums> & draws, const std::vector<double> & dense) {
    summary.kl_interval = percentiles(each(draws, [](const Sums & mean) { return mean.kl; }));
    summary.top1_interval = percentiles(each(draws, [](const Sums & mean) { return mean.same_top; }));
    std::vector<double> ratios(draws.size());
    std::transform(draws.begin(), draws.end(), dense.begin(), ratios.begin(),
                   [](const Sums & mean, double dense_nll) { return std::exp(mean.nll - dense_nll); });
    summary.ppl_ratio_interval = percentiles(std::move(ratios));
}

void add_reads(MethodSummary & summary, const Evaluation & evaluation, size_t method, double dense_seconds) {
    Reads reads;
    for (const Window & window : evaluation.windows) {
        reads += window.methods[method].reads;
        summary.seconds += window.methods[method].seconds;
    }
    summary.share = ratio(reads.read, reads.past);
    summary.bytes_share = ratio(reads.bytes, reads.dense_bytes);
    summary.cost = ratio(summary.seconds, dense_seconds);
}

void add_layers(MethodSummary & summary, const Evaluation & evaluation, size_t method) {
    std::vector<LayerError> layers;
    for (const Window & window : evaluation.windows) {
        const std::vector<LayerError> & here = window.methods[method].layers;
        layers.resize(std::max(layers.size(), here.size()));
        for (size_t layer = 0; layer < here.size(); layer++) {
            if (!here[layer].left_alone) {
                layers[layer].difference += here[layer].difference;
                layers[layer].norm += here[layer].norm;
                layers[layer].left_alone = false;
            }
        }
    }
    for (const LayerError & layer : layers) {
        summary.layers_left_alone += layer.left_alone ? 1 : 0;
        summary.layer_error.push_back(layer.left_alone ? not_measured : std::sqrt(ratio(layer.difference, layer.norm)));
    }
}

void add_ahead_of(std::vector<MethodSummary> & methods, const Draws & draws) {
    for (size_t a = 0; a < methods.size(); a++) {
        for (size_t b = 0; b < methods.size(); b++) {
            if (!(methods[b].kl > methods[a].kl)) { // or not measured
                continue;
            }
            std::vector<double> differences(draws.methods[a].size());
            std::transform(draws.methods[a].begin(), draws.methods[a].end(), draws.methods[b].begin(),
                           differences.begin(),
                           [](const Sums & ours, const Sums & theirs) { return theirs.kl - ours.kl; });
            if (percentiles(std::move(differences)).low > 0.0) {
                methods[a].ahead_of.push_back(methods[b].label);
            }
        }
    }
}

void mark_frontier(std::vector<MethodSummary> & methods, double MethodSummary::* share, bool MethodSummary::* mark) {
    for (MethodSummary & method : methods) {
        method.*mark = !std::isnan(method.*share) && !std::isnan(method.kl) &&
                       std::none_of(methods.begin(), methods.end(), [&](const MethodSummary & other) {
                           return other.*share <= method.*share && other.kl < method.kl;
                       });
    }
}

void add_tokens(Summary & summary, const Evaluation & evaluation) {
    const Blocks blocks = blocks_of(evaluation);
    const Draws draws = draw(blocks);
    const double tokens = std::accumulate(blocks.tokens.begin(), blocks.tokens.end(), 0.0);
    const double dense_nll = std::accumulate(blocks.dense_nll.begin(), blocks.dense_nll.end(), 0.0);
    summary.tokens = static_cast<int64_t>(tokens);
    if (summary.tokens == 0 || !std::isfinite(dense_nll)) {
        return;
    }
    summary.dense_ppl = std::exp(dense_nll / tokens);
    std::vector<double> perplexities = draws.dense_nll;
    std::transform(perplexities.begin(), perplexities.end(), perplexities.begin(),
                   [](double nll) { return std::exp(nll); });
    summary.dense_ppl_interval = percentiles(std::move(perplexities));
    for (size_t m = 0; m < summary.methods.size(); m++) {
        MethodSummary & method = summary.methods[m];
        method.broken = broken_tokens(evaluation, m);
        if (method.broken == 0) {
            add_quantiles(method, sorted_kl(evaluation, m));
            add_means(method, blocks.methods[m], tokens, dense_nll);
            add_intervals(method, draws.methods[m], draws.dense_nll);
        }
    }
    add_ahead_of(summary.methods, draws);
}

} // namespace

double quantile(std::span<const double> sorted, double fraction) {
    if (sorted.empty()) {
        return not_measured;
    }
    const double place = fraction * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<size_t>(place);
    const size_t above = std::min(below + 1, sorted.size() - 1);
    const double part = place - static_cast<double>(below);
    return sorted[below] + (part * (sorted[above] - sorted[below]));
}

Summary summarise(const Evaluation & evaluation) {
    const Evaluation ordered = in_order(evaluation);
    Summary summary;
    summary.windows = static_cast<int64_t>(ordered.windows.size());
    for (const Window & window : ordered.windows) {
        summary.dense_seconds += window.dense_seconds;
    }
    for (size_t m = 0; m < ordered.labels.size(); m++) {
        MethodSummary method;
        method.label = ordered.labels[m];
        add_reads(method, ordered, m, summary.dense_seconds);
        add_layers(method, ordered, m);
        summary.methods.push_back(std::move(method));
    }
    add_tokens(summary, ordered);
    mark_frontier(summary.methods, &MethodSummary::share, &MethodSummary::frontier);
    mark_frontier(summary.methods, &MethodSummary::bytes_share, &MethodSummary::frontier_bytes);
    add_retrieval(summary, evaluation.answers);
    return summary;
}

} // namespace cascade::evaluate
