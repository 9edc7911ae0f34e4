#include "report/eval_table.h"

#include "report/json_figures.h"
#include "report/table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <vector>

namespace cascade::report {

namespace {

using nlohmann::json;

// KL divergences span decades: three digits of each, and its interval to the same place.
int kl_digits(double value) {
    return value > 0.0 ? std::clamp(2 - static_cast<int>(std::floor(std::log10(value))), 3, 7) : 4;
}

std::string kl_cell(const json & object, const std::string & name) {
    const json value = field(object, name);
    return value.is_number() ? cell(object, name, kl_digits(value.get<double>())) : "-";
}

std::string text_of(const json & object, const char * name) {
    const json value = field(object, name);
    return value.is_string() ? value.get<std::string>() : "";
}

// A note "names: words" of those methods for which something holds.
template <typename Holds>
std::string names_of(const json & methods, Holds holds) {
    std::vector<std::string> names;
    for (const json & method : methods) {
        if (holds(method)) {
            names.push_back(text_of(method, "name"));
        }
    }
    return fmt::format("{}", fmt::join(names, ", "));
}

std::string layers_note(const json & methods) {
    std::string text;
    for (const json & method : methods) {
        const int64_t left =
            field(method, "layers_left_alone").is_number() ? method["layers_left_alone"].get<int64_t>() : 0;
        const size_t layers = field(method, "layer_error").size();
        if (left > 0 && static_cast<size_t>(left) < layers) {
            text = fmt::format("- {} of {} layers were left to the engine's own attention.\n", left, layers);
        }
    }
    return text;
}

std::string retrieval_note(const json & evaluation) {
    std::string text;
    const json & methods = evaluation.at("methods");
    const json dense = methods.empty() ? json() : field(methods[0], "retrieval_dense");
    if (dense.is_number()) {
        text += fmt::format("- Retrieval: the dense model answers {:.1f} % of the same questions.\n",
                            100.0 * dense.get<double>());
    }
    std::vector<std::string> out;
    for (const json & task : field(field(evaluation, "retrieval"), "tasks")) {
        if (task.at("out_of_reach").get<bool>()) {
            out.push_back(fmt::format("{} at {} tokens ({})", task.at("task").get<std::string>(),
                                      task.at("length").get<int64_t>(), percent(task, "dense")));
        }
    }
    if (!out.empty()) {
        text += fmt::format("- Out of the dense model's own reach, and not counted: {}.\n", fmt::join(out, ", "));
    }
    return text;
}

std::string notes(const json & evaluation) {
    const json & methods = evaluation.at("methods");
    std::string text =
        fmt::format("- Dense perplexity {}; {} tokens scored in {} of {} windows; ± is half of a 95 % interval.\n",
                    cell(evaluation.at("dense"), "ppl", 3), evaluation.at("tokens_scored").get<int64_t>(),
                    evaluation.at("windows_done").get<int64_t>(), evaluation.at("windows").get<int64_t>());
    if (const json noise = field(evaluation, "noise"); noise.is_object()) {
        text +=
            fmt::format("- Noise, the engine's own other attention form: KL {}, top-1 {}. Less than this can't be told "
                        "apart from dense.\n",
                        kl_cell(noise, "kl"), percent(noise, "top1"));
    }
    text += retrieval_note(evaluation) + layers_note(methods);
    const auto holds = [](const char * name) {
        return [name](const json & method) { return field(method, name) == json(true); };
    };
    if (const std::string names = names_of(methods, holds("frontier")); !names.empty()) {
        text += fmt::format("- No other reads as little and has a lower KL (by share read): {}.\n", names);
    }
    const auto broken = [](const json & method) { return field(method, "broken_tokens") > json(0); };
    if (const std::string names = names_of(methods, broken); !names.empty()) {
        text += fmt::format("- Not all predictions are numbers, so not judged: {}.\n", names);
    }
    return text +
           "- KL beside what quantising an 8B model costs: Q8_0 0.0014, Q6_K 0.0055, Q5_K_M 0.011, Q4_K_M 0.031.\n";
}

// In quotes where it has to be.
std::string csv_text(const std::string & text) {
    if (text.find_first_of(",\"\n\r") == std::string::npos) {
        return text;
    }
    std::string quoted = "\"";
    for (const char c : text) {
        quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    }
    return quoted + "\"";
}

constexpr std::array csv_columns = { "share",
                                     "bytes_share",
                                     "kl",
                                     "kl_interval",
                                     "kl_median",
                                     "kl_99",
                                     "kl_999",
                                     "top1",
                                     "top1_interval",
                                     "ppl_ratio",
                                     "ppl_ratio_interval",
                                     "retrieval",
                                     "retrieval_interval",
                                     "retrieval_dense",
                                     "retrieval_tokens",
                                     "retrieval_tokens_dense",
                                     "layers_left_alone",
                                     "seconds",
                                     "cost",
                                     "frontier",
                                     "frontier_bytes",
                                     "broken_tokens" };

bool is_interval(const std::string & column) { return column.ends_with("_interval"); }

std::string csv_field(const json & method, const std::string & column) {
    const json value = field(method, column);
    if (is_interval(column)) {
        return value.is_array() ? csv_number(value.at(0)) + "," + csv_number(value.at(1)) : ",";
    }
    return value.is_boolean() ? (value.get<bool>() ? "1" : "0") : csv_number(value);
}

} // namespace

std::string eval_table(const json & evaluation) {
    Table table({ "method", "share", "bytes", "KL", "median", "99 %", "top-1", "PPL ratio", "retrieval" });
    for (const json & method : evaluation.at("methods")) {
        table.add({ text_of(method, "name"), percent(method, "share"), percent(method, "bytes_share"),
                    kl_cell(method, "kl"), kl_cell(method, "kl_median"), kl_cell(method, "kl_99"),
                    percent(method, "top1"), cell(method, "ppl_ratio", 4), percent(method, "retrieval") });
    }
    return fmt::format("## {} ({}, {}) on {}, T = {}\n\n{}\n{}", text_of(evaluation, "model"),
                       text_of(evaluation, "architecture"), text_of(evaluation, "weights"), text_of(evaluation, "text"),
                       evaluation.at("tokens").get<int64_t>(), table.text(), notes(evaluation));
}

std::string eval_csv(const json & evaluation) {
    std::string text = "method";
    for (const std::string column : csv_columns) {
        const std::string stem = column.substr(0, column.size() - (is_interval(column) ? 9 : 0));
        text += is_interval(column) ? fmt::format(",{0}_low,{0}_high", stem) : "," + stem;
    }
    text += "\n";
    for (const json & method : evaluation.at("methods")) {
        text += csv_text(text_of(method, "name"));
        for (const char * column : csv_columns) {
            text += "," + csv_field(method, column);
        }
        text += "\n";
    }
    return text;
}

} // namespace cascade::report
