#include "report/analysis_table.h"

#include "analysis/figures.h"
#include "report/json_figures.h"
#include "report/table.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace cascade::report {

namespace {

using nlohmann::json;

bool same_case(const json & a, const json & b) {
    return a.at("tokens") == b.at("tokens") && a.at("source") == b.at("source") && a.at("tau") == b.at("tau");
}

std::vector<std::string> summary_row(const std::string & name, const json & summary) {
    return { name,
             cell(summary, "mean_r", 1),
             cell(summary, "mean_r_share", 3),
             cell(summary, "mean_jaccard", 3),
             cell(summary, "mean_jaccard_independent", 3),
             percent(summary, "mean_turnover"),
             cell(summary, "mean_growth", 2),
             cell(summary, "missed", 0),
             cell(summary, "uncovered", 0),
             percent(summary, "gram_savings"),
             cell(summary, "mean_copy_error", 3),
             cell(summary, "seconds", 2) };
}

std::string summary_table(const json & results, const json & of) {
    Table table({ "method", "mean r", "r/T", "Jaccard", "to indep.", "turnover", "growth", "missed", "uncovered",
                  "Gram saved", "copy error", "seconds" });
    for (const json & result : results) {
        if (same_case(result, of)) {
            table.add(summary_row(result.at("method"), result.at("summary")));
            if (const json paper = field(result, "paper"); paper.is_object()) {
                table.add(summary_row("paper: " + paper.at("model").get<std::string>(), paper));
            }
        }
    }
    return fmt::format("### T = {}, source {}, tau = {}, windows {}\n\n{}\n", of.at("tokens").get<int64_t>(),
                       of.at("source").get<std::string>(), of.at("tau").get<double>(), of.at("windows").get<int64_t>(),
                       table.text());
}

json paper_layer(const json & result, int64_t layer) {
    for (const json & candidate : field(field(result, "paper"), "layers")) {
        if (candidate.at("layer") == layer) {
            return candidate;
        }
    }
    return nullptr;
}

std::string layer_table(const json & result) {
    const bool with_paper = field(result, "paper").is_object();
    std::vector<std::string> header = { "layer",   "r",     "r/T",    "adds",       "removes",    "turnover", "Jaccard",
                                        "to ind.", "grown", "missed", "Gram saved", "copy error", "seconds" };
    if (with_paper) {
        header.insert(header.end(), { "paper r", "paper Jaccard", "paper turnover" });
    }
    Table table(header);
    for (const json & layer : result.at("layers")) {
        std::vector<std::string> row = { fmt::format("{}", layer.at("layer").get<int64_t>()),
                                         cell(layer, "r", 1),
                                         cell(layer, "r_share", 3),
                                         cell(layer, "adds", 1),
                                         cell(layer, "removes", 1),
                                         percent(layer, "turnover"),
                                         cell(layer, "jaccard_previous", 3),
                                         cell(layer, "jaccard_independent", 3),
                                         cell(layer, "growth", 2),
                                         cell(layer, "missed", 1),
                                         percent(layer, "gram_savings"),
                                         cell(layer, "copy_error", 3),
                                         cell(layer, "seconds", 4) };
        if (with_paper) {
            const json paper = paper_layer(result, layer.at("layer"));
            row.insert(row.end(),
                       { cell(paper, "r", 0), cell(paper, "jaccard_previous", 3), percent(paper, "turnover") });
        }
        table.add(std::move(row));
    }
    return fmt::format("### {}, T = {}, source {}, tau = {}\n\n{}\n", result.at("method").get<std::string>(),
                       result.at("tokens").get<int64_t>(), result.at("source").get<std::string>(),
                       result.at("tau").get<double>(), table.text());
}

} // namespace

std::string analysis_table(const json & analysis, const std::vector<std::string> & layers_of) {
    std::string text = fmt::format("## {} ({}, {} layers) on {}\n\n", analysis.at("model").get<std::string>(),
                                   analysis.at("architecture").get<std::string>(),
                                   analysis.at("n_layer").get<int64_t>(), analysis.at("text").get<std::string>());
    const json & results = analysis.at("results");
    for (size_t i = 0; i < results.size(); i++) {
        const bool first = std::none_of(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(i),
                                        [&](const json & earlier) { return same_case(earlier, results[i]); });
        text += first ? summary_table(results, results[i]) : "";
    }
    for (const json & result : results) {
        if (std::find(layers_of.begin(), layers_of.end(), result.at("method").get<std::string>()) != layers_of.end()) {
            text += layer_table(result);
        }
    }
    for (const json & timing : field(analysis, "timing")) {
        text += fmt::format("T = {}: {:.2f} times the bare model's pass ({:.1f} s against {:.1f} s)\n",
                            timing.at("tokens").get<int64_t>(), timing.at("ratio").get<double>(),
                            timing.at("analysis_seconds").get<double>(), timing.at("bare_seconds").get<double>());
    }
    return text;
}

std::string analysis_csv(const json & analysis) {
    std::vector<std::string> columns = { "r_share", "gram_savings" };
    for (const char * name : analysis::figure_names) {
        columns.insert(columns.end(), { name, std::string(name) + "_sd" });
    }
    std::string text = fmt::format("tokens,source,tau_start,method,windows,layer,{}\n", fmt::join(columns, ","));
    for (const json & result : analysis.at("results")) {
        for (const json & layer : result.at("layers")) {
            text += fmt::format("{},{},{},{},{},{}", csv_number(result.at("tokens")),
                                result.at("source").get<std::string>(), csv_number(result.at("tau")),
                                result.at("method").get<std::string>(), csv_number(result.at("windows")),
                                csv_number(layer.at("layer")));
            for (const std::string & column : columns) {
                text += "," + csv_number(field(layer, column));
            }
            text += "\n";
        }
    }
    return text;
}

} // namespace cascade::report
