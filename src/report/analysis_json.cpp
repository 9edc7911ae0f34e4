#include "report/analysis_json.h"

#include "analysis/statistics.h"
#include "report/json_figures.h"
#include "report/paper.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <tuple>

namespace cascade::report {

namespace {

using namespace analysis;
using nlohmann::json;

void add_estimate(json & object, const std::string & name, const std::vector<double> & values) {
    const Estimate figure = estimate(values);
    object[name] = number(figure.mean);
    if (!std::isnan(figure.sd)) {
        object[name + "_sd"] = figure.sd;
        object[name + "_interval"] = { figure.low, figure.high };
    }
}

// One method on one source, in all windows of a length.
struct Group {
    int64_t tokens = 0;
    std::vector<const Series *> series;
};

using Key = std::tuple<int64_t, std::string, double, Method>;

// In the order in which they were first seen.
std::vector<Group> groups_of(std::span<const Window> windows) {
    std::map<Key, size_t> places;
    std::vector<Group> groups;
    for (const Window & window : windows) {
        for (const Series & series : window.series) {
            const Key key = { window.tokens, series.source, series.tau, series.method };
            const auto [place, fresh] = places.try_emplace(key, groups.size());
            if (fresh) {
                groups.push_back({ window.tokens, {} });
            }
            groups[place->second].series.push_back(&series);
        }
    }
    return groups;
}

json layer_json(const Group & group, size_t layer) {
    json result = { { "layer", layer } };
    for (size_t figure = 0; figure < figure_count; figure++) {
        std::vector<double> values;
        values.reserve(group.series.size());
        for (const Series * series : group.series) {
            values.push_back(series->layers[layer].values[figure]);
        }
        add_estimate(result, figure_names[figure], values);
    }
    const auto t = static_cast<double>(group.tokens);
    result["r_share"] = result["r"].get<double>() / t;
    if (result["gram_entries"].is_number()) {
        result["gram_savings"] = 1.0 - (result["gram_entries"].get<double>() / (t * t));
    }
    return result;
}

json summary_json(const Group & group) {
    std::vector<Summary> summaries;
    summaries.reserve(group.series.size());
    for (const Series * series : group.series) {
        summaries.push_back(summarise(*series, group.tokens));
    }
    json result = json::object();
    const auto add = [&](const char * name, double Summary::* figure) {
        std::vector<double> values;
        values.reserve(summaries.size());
        for (const Summary & summary : summaries) {
            values.push_back(summary.*figure);
        }
        add_estimate(result, name, values);
    };
    add("mean_r", &Summary::mean_r);
    add("mean_r_share", &Summary::mean_r_share);
    add("mean_jaccard", &Summary::mean_jaccard);
    add("mean_jaccard_independent", &Summary::mean_jaccard_independent);
    add("mean_turnover", &Summary::mean_turnover);
    add("mean_growth", &Summary::mean_growth);
    add("missed", &Summary::missed);
    add("uncovered", &Summary::uncovered);
    add("gram_entries", &Summary::gram_entries);
    add("gram_savings", &Summary::gram_savings);
    add("multiply_adds", &Summary::multiply_adds);
    add("seconds", &Summary::seconds);
    add("mean_copy_error", &Summary::mean_copy_error);
    return result;
}

json group_json(const Group & group, const AnalysisInfo & info) {
    const Series & first = *group.series.front();
    size_t layers = first.layers.size();
    for (const Series * series : group.series) {
        layers = std::min(layers, series->layers.size());
    }
    json list = json::array();
    for (size_t layer = 0; layer < layers; layer++) {
        list.push_back(layer_json(group, layer));
    }
    return { { "tokens", group.tokens },
             { "source", first.source },
             { "tau", first.tau },
             { "method", name_of(first.method) },
             { "windows", group.series.size() },
             { "layers", list },
             { "summary", summary_json(group) },
             { "paper", paper_figures({ info.architecture, info.layers, group.tokens, first.source, first.tau,
                                        info.sign, first.method }) } };
}

json similarity_json(std::span<const Window> windows) {
    std::map<std::tuple<int64_t, std::string, double>, std::vector<const LayerSimilarity *>> same;
    for (const Window & window : windows) {
        for (const LayerSimilarity & similarity : window.similarity) {
            same[{ window.tokens, similarity.source, similarity.tau }].push_back(&similarity);
        }
    }
    json list = json::array();
    for (const auto & [key, similarities] : same) {
        std::vector<std::vector<double>> mean = similarities.front()->jaccard;
        for (size_t a = 0; a < mean.size(); a++) {
            for (size_t b = 0; b < mean[a].size(); b++) {
                double sum = 0.0;
                for (const LayerSimilarity * similarity : similarities) {
                    sum += similarity->jaccard.at(a).at(b);
                }
                mean[a][b] = sum / static_cast<double>(similarities.size());
            }
        }
        list.push_back({ { "tokens", std::get<0>(key) },
                         { "source", std::get<1>(key) },
                         { "tau", std::get<2>(key) },
                         { "jaccard", mean } });
    }
    return list;
}

json sample_json(std::span<const Window> windows) {
    const auto shown =
        std::find_if(windows.begin(), windows.end(), [](const Window & window) { return !window.pieces.empty(); });
    if (shown == windows.end()) {
        return nullptr;
    }
    json sets = json::array();
    for (const Series & series : shown->series) {
        if (!series.sets.empty()) {
            sets.push_back({ { "source", series.source },
                             { "tau", series.tau },
                             { "method", name_of(series.method) },
                             { "layers", series.sets } });
        }
    }
    return { { "tokens", shown->tokens }, { "pieces", shown->pieces }, { "sets", sets } };
}

// Windows that were also run bare, one for each length.
json timing_json(std::span<const Window> windows) {
    json list = json::array();
    for (const Window & window : windows) {
        if (!std::isnan(window.bare_seconds)) {
            list.push_back({ { "tokens", window.tokens },
                             { "bare_seconds", number(window.bare_seconds) },
                             { "analysis_seconds", number(window.seconds) },
                             { "ratio", number(window.seconds / window.bare_seconds) } });
        }
    }
    return list;
}

} // namespace

json analysis_json(const AnalysisInfo & info, std::span<const Window> windows) {
    json results = json::array();
    for (const Group & group : groups_of(windows)) {
        results.push_back(group_json(group, info));
    }
    return { { "kind", "cascade-analysis" },
             { "version", 1 },
             { "model", info.model },
             { "architecture", info.architecture },
             { "text", info.text },
             { "cascade", info.version },
             { "date", info.date },
             { "isa", info.isa },
             { "sign", info.sign },
             { "n_layer", info.layers },
             { "windows", info.windows },
             { "windows_done", windows.size() },
             { "complete", info.complete },
             { "results", results },
             { "layer_similarity", similarity_json(windows) },
             { "sample", sample_json(windows) },
             { "timing", timing_json(windows) } };
}

json window_json(const Window & window) {
    json series_list = json::array();
    for (const Series & series : window.series) {
        json layers = json::array();
        for (const Figures & figures : series.layers) {
            json values = json::array();
            for (const double value : figures.values) {
                values.push_back(kept(value));
            }
            layers.push_back(values);
        }
        series_list.push_back({ { "source", series.source },
                                { "tau", series.tau },
                                { "method", name_of(series.method) },
                                { "layers", layers },
                                { "sets", series.sets } });
    }
    json similarity = json::array();
    for (const LayerSimilarity & one : window.similarity) {
        similarity.push_back({ { "source", one.source }, { "tau", one.tau }, { "jaccard", one.jaccard } });
    }
    return { { "tokens", window.tokens },          { "index", window.index },   { "series", series_list },
             { "similarity", similarity },         { "pieces", window.pieces }, { "seconds", window.seconds },
             { "bare", kept(window.bare_seconds) } };
}

Window window_from(const json & source) {
    const auto number_from = [](const json & value) { return value.is_null() ? not_measured : value.get<double>(); };
    Window window;
    source.at("tokens").get_to(window.tokens);
    source.at("index").get_to(window.index);
    source.at("pieces").get_to(window.pieces);
    source.at("seconds").get_to(window.seconds);
    window.bare_seconds = number_from(source.at("bare"));
    for (const json & one : source.at("series")) {
        const auto method = method_named(one.at("method").get<std::string>());
        if (!method) {
            throw std::runtime_error("unknown method");
        }
        Series series{ one.at("source"), one.at("tau"), *method, {}, one.at("sets") };
        for (const json & layer : one.at("layers")) {
            Figures figures;
            for (size_t i = 0; i < figure_count; i++) {
                figures.values[i] = number_from(layer.at(i));
            }
            if (std::isnan(figures[Figure::r])) {
                throw std::runtime_error("a layer without a number of representatives");
            }
            series.layers.push_back(figures);
        }
        window.series.push_back(std::move(series));
    }
    if (window.series.empty()) {
        throw std::runtime_error("a window without figures");
    }
    for (const json & one : source.at("similarity")) {
        LayerSimilarity similarity{ one.at("source"), one.at("tau"), one.at("jaccard") };
        for (const auto & row : similarity.jaccard) {
            if (row.size() != similarity.jaccard.size() || row.size() != window.series.front().layers.size()) {
                throw std::runtime_error("a matrix of another size");
            }
        }
        window.similarity.push_back(std::move(similarity));
    }
    return window;
}

} // namespace cascade::report
