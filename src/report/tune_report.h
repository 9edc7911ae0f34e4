// What `cascade tune` found, for scripts and for the terminal.
#pragma once

#include "evaluate/summary.h"

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace cascade::report {

struct TuneInfo {
    std::string model; // file names
    std::string text;
    std::string sidecar;
    std::string architecture;
    std::string weights; // their type
    std::string version;
    std::string date;
    std::string machine;
    std::string command; // as typed
    int64_t tokens = 0;  // of a window
    int64_t windows = 0; // that epsilons were searched on
    int64_t probe_windows = 0;
    double probe_epsilon = 0.0;
};

struct ProbedLayers { // neighbours, approximated alone
    int first = 0;
    int last = 0;
    evaluate::MethodSummary measured;
};

struct TunedEpsilons {
    std::vector<float> epsilons; // by layer; empty: none keep the promise
    evaluate::MethodSummary measured;
};

struct TunedModeReport {
    std::string mode;
    double kl_budget = 0.0;
    double top1_budget = 0.0;
    TunedEpsilons by_layer;
    TunedEpsilons uniform;
    bool layers_pay = false; // those by layer are the ones kept
};

nlohmann::json tune_json(const TuneInfo & info, const std::vector<ProbedLayers> & probes,
                         const std::vector<TunedModeReport> & modes);

std::string tune_table(const nlohmann::json & tuning);

} // namespace cascade::report
