#include "report/calibration_report.h"

#include "report/json_figures.h"
#include "report/table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>

namespace cascade::report {

namespace {

using nlohmann::json;

constexpr std::array<int64_t, 4> shown_counts = { 64, 128, 256, 512 };

json row_json(const CalibratedRow & row) {
    json curve = json::array();
    for (const auto & [k, energy] : row.curve) {
        curve.push_back({ k, number(energy) });
    }
    const bool inherits = row.inherited_energy >= 0.0;
    return { { "input", row.input },
             { "kind", row.kind },
             { "layer", row.layer },
             { "width", row.width },
             { "k", row.k },
             { "maps", row.maps },
             { "curve", curve },
             { "energy", number(row.energy) },
             { "held_out_median", number(row.held_out_median) },
             { "held_out_passing", number(row.held_out_passing) },
             { "spoken_for", number(row.spoken_for) },
             { "gates_agree", number(row.gates_agree) },
             { "gain", number(row.gain) },
             { "output_lost", row.output_lost >= 0.0 ? number(row.output_lost) : json() },
             { "inherited_energy", inherits ? number(row.inherited_energy) : json() },
             { "updates", inherits ? json(row.updates) : json() },
             { "updates_saved",
               inherits ? number(1.0 - (static_cast<double>(row.updates) / static_cast<double>(row.k))) : json() } };
}

// Over the rows of a kind that have the figure.
double mean_of(const json & rows, const std::string & kind, const std::string & name) {
    double sum = 0.0;
    int64_t count = 0;
    for (const json & row : rows) {
        if (row.at("kind") == kind && row.at(name).is_number()) {
            sum += row.at(name).get<double>();
            count++;
        }
    }
    return count > 0 ? sum / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
}

json kinds_json(const json & rows) {
    json kinds = json::array();
    std::vector<std::string> seen;
    for (const json & row : rows) {
        const auto kind = row.at("kind").get<std::string>();
        if (std::find(seen.begin(), seen.end(), kind) != seen.end()) {
            continue;
        }
        seen.push_back(kind);
        json one = { { "kind", kind }, { "width", row.at("width") } };
        for (const char * name : { "k", "energy", "held_out_median", "held_out_passing", "spoken_for", "gates_agree",
                                   "output_lost", "inherited_energy", "updates_saved" }) {
            one[name] = number(mean_of(rows, kind, name));
        }
        kinds.push_back(std::move(one));
    }
    return kinds;
}

std::string energy_cell(const json & row, int64_t k) {
    for (const json & point : row.at("curve")) {
        if (point.at(0) == k) {
            return fmt::format("{:.4f}", point.at(1).get<double>());
        }
    }
    return "-";
}

std::string kinds_table(const json & kinds) {
    Table table(
        { "input", "width", "k", "energy", "median r/x", "gate passes", "in the basis below", "updates saved" });
    for (const json & kind : kinds) {
        table.add({ kind.at("kind").get<std::string>(), cell(kind, "width", 0), cell(kind, "k", 0),
                    cell(kind, "energy", 4), cell(kind, "held_out_median", 3), percent(kind, "held_out_passing"),
                    percent(kind, "inherited_energy"), percent(kind, "updates_saved") });
    }
    return table.text();
}

std::string layers_table(const json & rows) {
    std::vector<std::string> header = { "input", "layer", "width", "k" };
    for (const int64_t k : shown_counts) {
        header.push_back(fmt::format("k={}", k));
    }
    header.insert(header.end(), { "half", "energy", "median r/x", "gate passes", "in the basis below", "updates" });
    Table table(header);
    for (const json & row : rows) {
        std::vector<std::string> cells = { row.at("kind").get<std::string>(), cell(row, "layer", 0),
                                           cell(row, "width", 0), cell(row, "k", 0) };
        for (const int64_t k : shown_counts) {
            cells.push_back(energy_cell(row, k));
        }
        cells.push_back(energy_cell(row, row.at("width").get<int64_t>() / 2));
        cells.insert(cells.end(),
                     { cell(row, "energy", 4), cell(row, "held_out_median", 3), percent(row, "held_out_passing"),
                       percent(row, "inherited_energy"), cell(row, "updates", 0) });
        table.add(std::move(cells));
    }
    return table.text();
}

} // namespace

json calibration_json(const CalibrationInfo & info, const std::vector<CalibratedRow> & rows) {
    json inputs = json::array();
    for (const CalibratedRow & row : rows) {
        inputs.push_back(row_json(row));
    }
    const bool bare = info.bare_prefill > 0.0;
    const double calibrating = info.prefill + info.moments + info.held_out + info.images_seconds;
    json kinds = kinds_json(inputs);
    return { { "kind", "calibration" },
             { "model", info.model },
             { "text", info.text },
             { "sidecar", info.sidecar },
             { "sidecar_bytes", info.sidecar_bytes },
             { "architecture", info.architecture },
             { "weights", info.weights },
             { "images", info.images },
             { "version", info.version },
             { "date", info.date },
             { "machine", info.machine },
             { "command", info.command },
             { "tokens", info.tokens },
             { "window", info.window },
             { "passes_over_text", info.passes_over_text },
             { "gate", number(info.gate) },
             { "inherit_tolerance", number(info.inherit_tolerance) },
             { "seconds",
               { { "prefill", number(info.prefill) },
                 { "moments", number(info.moments) },
                 { "eigenproblems", number(info.eigenproblems) },
                 { "held_out", number(info.held_out) },
                 { "images", number(info.images_seconds) },
                 { "bare_prefill", bare ? number(info.bare_prefill) : json() } } },
             { "ratio_to_bare_prefill", bare ? number(calibrating / info.bare_prefill) : json() },
             { "kinds", std::move(kinds) },
             { "inputs", std::move(inputs) } };
}

std::string calibration_table(const json & calibration) {
    const json & seconds = calibration.at("seconds");
    return fmt::format("{}\n{}\n- Energy: share of the calibration text's; r is what of an input x lies outside its "
                       "basis, on held-out tokens; the gate "
                       "passes where |r| <= {} |x|.\n"
                       "- In the basis below: share of the energy within the basis of the layer before; updates: own "
                       "directions further "
                       "than {} from its span.\n"
                       "- {} tokens in windows of {}, {} over the text. Seconds: prefill {}, moments {}, eigenproblems "
                       "{}, held-out {}, images {}; "
                       "bare prefill {}, ratio without eigenproblems {}.\n"
                       "- Written to {} ({:.1f} MB).\n",
                       kinds_table(calibration.at("kinds")), layers_table(calibration.at("inputs")),
                       cell(calibration, "gate", 2), cell(calibration, "inherit_tolerance", 2),
                       calibration.at("tokens").get<int64_t>(), calibration.at("window").get<int64_t>(),
                       calibration.at("passes_over_text") == 1 ? "one pass"
                                                               : cell(calibration, "passes_over_text", 0) + " passes",
                       cell(seconds, "prefill", 1), cell(seconds, "moments", 1), cell(seconds, "eigenproblems", 1),
                       cell(seconds, "held_out", 1), cell(seconds, "images", 1), cell(seconds, "bare_prefill", 1),
                       cell(calibration, "ratio_to_bare_prefill", 2), calibration.at("sidecar").get<std::string>(),
                       calibration.at("sidecar_bytes").get<double>() / 1e6);
}

} // namespace cascade::report
