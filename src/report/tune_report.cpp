#include "report/tune_report.h"

#include "report/json_figures.h"
#include "report/table.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace cascade::report {

namespace {

using nlohmann::json;

json measured_json(const evaluate::MethodSummary & measured) {
    return { { "kl", number(measured.kl) },
             { "kl_low", number(measured.kl_interval.low) },
             { "kl_high", number(measured.kl_interval.high) },
             { "top1", number(measured.top1) },
             { "top1_low", number(measured.top1_interval.low) },
             { "top1_high", number(measured.top1_interval.high) },
             { "ppl_ratio", number(measured.ppl_ratio) },
             { "share", number(measured.share) },
             { "bytes_share", number(measured.bytes_share) } };
}

json epsilons_json(const TunedEpsilons & found) {
    if (found.epsilons.empty()) {
        return nullptr;
    }
    json result = measured_json(found.measured);
    result["epsilons"] = json::array();
    for (const float epsilon : found.epsilons) {
        result["epsilons"].push_back(number(epsilon));
    }
    return result;
}

std::string epsilon_range(const json & epsilons) {
    const auto [least, most] = std::minmax_element(epsilons.begin(), epsilons.end());
    const double low = least->get<double>();
    const double high = most->get<double>();
    return low == high ? fmt::format("{:.3g}", low) : fmt::format("{:.3g} to {:.3g}", low, high);
}

std::vector<std::string> mode_row(const json & mode, const char * kind, const char * words, bool kept) {
    const json found = field(mode, kind);
    std::vector<std::string> row = { mode.at("mode").get<std::string>(), words };
    if (!found.is_object()) {
        row.insert(row.end(), { "none keeps the promise", "-", "-", "-", "" });
        return row;
    }
    row.insert(row.end(), { epsilon_range(found.at("epsilons")),
                            fmt::format("{} (up to {})", cell(found, "kl", 5), cell(found, "kl_high", 5)),
                            fmt::format("{} (from {})", percent(found, "top1"), percent(found, "top1_low")),
                            percent(found, "bytes_share"), kept ? "kept" : "" });
    return row;
}

std::string layers_cell(const json & probe) {
    const int first = probe.at("first");
    const int last = probe.at("last");
    return first == last ? fmt::format("{}", first) : fmt::format("{} to {}", first, last);
}

std::string epsilon_cell(const json & mode, int layer) {
    const json kept = field(mode, mode.at("kept").get<std::string>());
    return kept.is_object() ? fmt::format("{:.4f}", kept.at("epsilons").at(static_cast<size_t>(layer)).get<double>())
                            : "default";
}

} // namespace

json tune_json(const TuneInfo & info, const std::vector<ProbedLayers> & probes,
               const std::vector<TunedModeReport> & modes) {
    json result = { { "model", info.model },
                    { "text", info.text },
                    { "sidecar", info.sidecar },
                    { "architecture", info.architecture },
                    { "weights", info.weights },
                    { "version", info.version },
                    { "date", info.date },
                    { "machine", info.machine },
                    { "command", info.command },
                    { "tokens", info.tokens },
                    { "windows", info.windows },
                    { "probe_windows", info.probe_windows },
                    { "probe_epsilon", number(info.probe_epsilon) },
                    { "probes", json::array() },
                    { "modes", json::array() } };
    for (const ProbedLayers & probe : probes) {
        json one = measured_json(probe.measured);
        one["first"] = probe.first;
        one["last"] = probe.last;
        result["probes"].push_back(std::move(one));
    }
    for (const TunedModeReport & mode : modes) {
        result["modes"].push_back({ { "mode", mode.mode },
                                    { "kl_budget", number(mode.kl_budget) },
                                    { "top1_budget", number(mode.top1_budget) },
                                    { "by_layer", epsilons_json(mode.by_layer) },
                                    { "uniform", epsilons_json(mode.uniform) },
                                    { "kept", mode.layers_pay ? "by_layer" : "uniform" } });
    }
    return result;
}

std::string tune_table(const json & tuning) {
    Table modes({ "mode", "epsilons", "of the gate", "KL", "top-1", "bytes read", "" });
    for (const json & mode : tuning.at("modes")) {
        const bool by_layer = mode.at("kept") == "by_layer";
        modes.add(mode_row(mode, "by_layer", "by layer", by_layer));
        modes.add(mode_row(mode, "uniform", "one for all", !by_layer));
    }
    std::vector<std::string> header = { "layer", "KL alone", "share read" };
    for (const json & mode : tuning.at("modes")) {
        header.push_back(mode.at("mode").get<std::string>());
    }
    Table layers(header);
    for (const json & probe : tuning.at("probes")) {
        std::vector<std::string> row = { layers_cell(probe), cell(probe, "kl", 7), percent(probe, "share") };
        for (const json & mode : tuning.at("modes")) {
            row.push_back(epsilon_cell(mode, probe.at("first")));
        }
        layers.add(std::move(row));
    }
    return fmt::format(
        "{}\n{}\n- Each layer alone at epsilon {}, all others exact; in brackets the ends of 95 % intervals.\n"
        "- {} windows of {} tokens, the second half of each scored; the first {} for single layers.\n"
        "- Written to {}; GGML_CASCADE_SIDECAR={} uses it.\n",
        modes.text(), layers.text(), cell(tuning, "probe_epsilon", 3), tuning.at("windows").get<int64_t>(),
        tuning.at("tokens").get<int64_t>(), tuning.at("probe_windows").get<int64_t>(),
        tuning.at("sidecar").get<std::string>(), tuning.at("sidecar").get<std::string>());
}

} // namespace cascade::report
