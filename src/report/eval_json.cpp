#include "report/eval_json.h"

#include "evaluate/summary.h"
#include "report/json_figures.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace cascade::report {

namespace {

using namespace evaluate;
using nlohmann::json;

json interval_json(const Interval & interval) {
    if (!std::isfinite(interval.low) || !std::isfinite(interval.high)) {
        return nullptr;
    }
    return { number(interval.low), number(interval.high) };
}

json list_json(const std::vector<double> & values) {
    json list = json::array();
    for (const double value : values) {
        list.push_back(number(value));
    }
    return list;
}

json method_json(const MethodSummary & method) {
    return { { "name", method.label },
             { "kl", number(method.kl) },
             { "kl_interval", interval_json(method.kl_interval) },
             { "kl_median", number(method.kl_median) },
             { "kl_99", number(method.kl_99) },
             { "kl_999", number(method.kl_999) },
             { "top1", number(method.top1) },
             { "top1_interval", interval_json(method.top1_interval) },
             { "ppl_ratio", number(method.ppl_ratio) },
             { "ppl_ratio_interval", interval_json(method.ppl_ratio_interval) },
             { "share", number(method.share) },
             { "bytes_share", number(method.bytes_share) },
             { "layer_error", list_json(method.layer_error) },
             { "layers_left_alone", method.layers_left_alone },
             { "seconds", number(method.seconds) },
             { "cost", number(method.cost) },
             { "retrieval", number(method.retrieval) },
             { "retrieval_interval", interval_json(method.retrieval_interval) },
             { "retrieval_dense", number(method.retrieval_dense) },
             { "retrieval_tokens", number(method.retrieval_tokens) },
             { "retrieval_tokens_dense", number(method.retrieval_tokens_dense) },
             { "ahead_of", method.ahead_of },
             { "frontier", method.frontier },
             { "frontier_bytes", method.frontier_bytes },
             { "broken_tokens", method.broken } };
}

json scores_json(const Asked & asked, const std::vector<std::string> & labels) {
    json scores = json::object();
    for (size_t m = 0; m < labels.size(); m++) {
        scores[labels[m]] = number(asked.methods[m]);
    }
    return { { "questions", asked.questions }, { "dense", number(asked.dense) }, { "methods", std::move(scores) } };
}

json retrieval_json(const Summary & summary, const std::vector<std::string> & labels) {
    if (summary.tasks.empty()) {
        return nullptr;
    }
    json tasks = json::array();
    for (const Asked & task : summary.tasks) {
        json one = scores_json(task, labels);
        one.update({ { "task", task.task }, { "length", task.length }, { "out_of_reach", task.out_of_reach } });
        tasks.push_back(std::move(one));
    }
    json depths = json::array();
    for (const Asked & range : summary.depths) {
        json one = scores_json(range, labels);
        one.update({ { "from", range.from }, { "to", range.to } });
        depths.push_back(std::move(one));
    }
    return { { "tasks", std::move(tasks) }, { "by_depth", std::move(depths) } };
}

json noise_json(const Summary & summary) {
    for (const MethodSummary & method : summary.methods) {
        if (method.label == noise_label) {
            return { { "name", method.label },
                     { "kl", number(method.kl) },
                     { "kl_interval", interval_json(method.kl_interval) },
                     { "top1", number(method.top1) },
                     { "top1_interval", interval_json(method.top1_interval) } };
        }
    }
    return nullptr;
}

json info_json(const EvalInfo & info) {
    return { { "kind", "evaluation" },
             { "version", 1 },
             { "model", info.model },
             { "architecture", info.architecture },
             { "weights", info.weights },
             { "text", info.text },
             { "cascade", info.version },
             { "date", info.date },
             { "machine", info.machine },
             { "isa", info.isa },
             { "command", info.command },
             { "cache_k", info.cache_k },
             { "cache_v", info.cache_v },
             { "tokens", info.tokens },
             { "chunk", info.chunk },
             { "window", info.window },
             { "scored_from", info.scored_from },
             { "seed", info.seed },
             { "windows", info.windows },
             { "complete", info.complete },
             { "leaderboard", info.leaderboard } };
}

} // namespace

json eval_json(const EvalInfo & info, const Evaluation & evaluation) {
    const Summary summary = summarise(evaluation);
    json methods = json::array();
    for (const MethodSummary & method : summary.methods) {
        methods.push_back(method_json(method));
    }
    json result = info_json(info);
    result.update({ { "windows_done", summary.windows },
                    { "tokens_scored", summary.tokens },
                    { "dense",
                      { { "ppl", number(summary.dense_ppl) },
                        { "ppl_interval", interval_json(summary.dense_ppl_interval) },
                        { "seconds", number(summary.dense_seconds) } } },
                    { "noise", noise_json(summary) },
                    { "methods", std::move(methods) },
                    { "retrieval", retrieval_json(summary, evaluation.labels) } });
    return result;
}

} // namespace cascade::report
