// What `cascade calibrate` found, for scripts, the terminal and a page.
#pragma once

#include "report/html_page.h"

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace cascade::report {

struct CalibrationInfo {
    std::string model; // file names
    std::string text;
    std::string sidecar;
    std::string architecture;
    std::string weights; // their type
    std::string images;  // the images' type
    std::string version;
    std::string date;
    std::string machine;
    std::string command; // as typed
    int64_t tokens = 0;
    int64_t window = 0;
    int64_t passes_over_text = 0;
    uint64_t sidecar_bytes = 0;
    double gate = 0.0;
    double inherit_tolerance = 0.0;
    // Seconds.
    double prefill = 0.0;
    double moments = 0.0;
    double eigenproblems = 0.0;
    double images_seconds = 0.0;
    double held_out = 0.0;
    double bare_prefill = 0.0; // 0: not measured
};

struct CalibratedRow {
    std::string input; // "blk.3.attn_q"
    std::string kind;  // "attn_q"
    int layer = 0;
    int64_t width = 0;
    int64_t k = 0;
    int64_t maps = 0;                              // that read it
    std::vector<std::pair<int64_t, double>> curve; // energy by k
    double energy = 0.0;                           // at its own k
    double held_out_median = 0.0;                  // not a number where not measured
    double held_out_passing = 0.0;
    double spoken_for = 0.0;        // share of held-out tokens with a representative other than themselves
    double gates_agree = 0.0;       // of those, whose gate decides as its: at a bound that half of all tokens pass
    double gain = 1.0;              // of the gate
    double output_lost = -1.0;      // share of the output's energy; below 0: not looked at
    double inherited_energy = -1.0; // below 0: it is the first of its kind
    int64_t updates = 0;
};

nlohmann::json calibration_json(const CalibrationInfo & info, const std::vector<CalibratedRow> & rows);

std::string calibration_table(const nlohmann::json & calibration);

inline std::string calibration_page(const nlohmann::json & calibration) {
    return html_page("calibration.html", calibration);
}

} // namespace cascade::report
