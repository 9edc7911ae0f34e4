// The checks behind `cascade doctor`: what is there, whether it fits together, and what to do where it doesn't.
//
// Whatever loads code or files of others (the engine's backends, the plugin, a model) runs in a child process.
#pragma once

#include "cascade/settings.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace cascade::cli {

enum class Health { ok, note, problem };

struct Check {
    std::string name;
    Health health = Health::ok;
    std::string finding;
    std::string remedy;    // what to do; empty where nothing is to be done
    nlohmann::json detail; // for scripts; null where the finding says it all
};

using Checks = std::vector<Check>;

struct Diagnosis {
    Checks checks;
    std::string verdict; // what cascade would do here
    bool has_problem() const;
};

// `model`: a GGUF file, or empty.
Diagnosis diagnose(const std::string & model);

// One line for each check, and the verdict.
std::string diagnosis_text(const Diagnosis & diagnosis);
nlohmann::json diagnosis_json(const Diagnosis & diagnosis);

// The parts. `environment`: "NAME=value"; the plugin's settings are read from it as the plugin reads them.
Checks check_variables(const std::vector<std::string> & environment, Settings & settings);

struct EngineState {
    bool usable = false;               // its CPU backend is there
    std::vector<std::string> features; // that its CPU backend was compiled with, as it calls them
    bool has(const std::string & feature) const;
};
Checks check_engine(EngineState & state);
Checks check_machine(const EngineState & engine);

// What was measured here before; `settings` name the file.
Checks check_costs(const Settings & settings);

struct PluginState {
    bool loads = false;
    bool named = false; // GGML_BACKEND_PATH names it, so that llama.cpp's programs load it
};
Checks check_plugin(PluginState & state);

struct ModelState {
    bool opens = false;
    int attentions = 0;
    int taken = 0;
};
Checks check_model(const std::string & model, const Settings & settings, ModelState & state);

// What GGML_CASCADE_SIDECAR names, and whether it was made for this model's file; nothing where it isn't set.
Checks check_sidecar(const std::string & model, const Settings & settings);

// The first line that is the engine's or our own complaint, for a sentence.
std::string first_complaint(const std::string & errors);

} // namespace cascade::cli
