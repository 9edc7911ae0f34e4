// An evaluation as scripts read it, and its parts as an interrupted one is kept.
#pragma once

#include "evaluate/results.h"

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace cascade::report {

struct EvalInfo {
    std::string model; // file name
    std::string architecture;
    std::string weights; // their type: "Q4_1"
    std::string text;    // file name
    std::string version;
    std::string date;
    std::string machine;
    std::string isa;
    std::string command; // as typed
    std::string cache_k; // types of the cache: "f16"
    std::string cache_v;
    int64_t tokens = 0;      // of a window
    int64_t chunk = 0;       // queries that choose together
    int64_t window = 0;      // recent tokens, always read exactly
    int64_t scored_from = 0; // the first token of a window whose prediction is judged
    uint64_t seed = 0;
    int64_t windows = 0; // wanted
    bool complete = true;
    bool leaderboard = false; // its page is the comparison of all methods
};

// The engine's own other attention form, where it was run as a method: what differs by rounding alone.
constexpr const char * noise_label = "fa-off";

// Everything over all windows (evaluate/summary.h). Throws std::invalid_argument as evaluate::summarise does.
nlohmann::json eval_json(const EvalInfo & info, const evaluate::Evaluation & evaluation);

// One window and one answer, as they were, to the bit. Reading throws nlohmann::json::exception or std::runtime_error
// for all that is no window or answer; lengths within one agree.
nlohmann::json eval_window_json(const evaluate::Window & window);
evaluate::Window eval_window_from(const nlohmann::json & json);
nlohmann::json answer_json(const evaluate::Answer & answer);
evaluate::Answer answer_from(const nlohmann::json & json);

} // namespace cascade::report
