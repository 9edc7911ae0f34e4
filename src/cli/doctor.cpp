#include "cli/doctor.h"

#include <algorithm>
#include <fmt/format.h>
#include <sstream>
#include <unistd.h>

namespace cascade::cli {

namespace {

const char * health_name(Health health) {
    return health == Health::ok ? "ok" : (health == Health::note ? "note" : "problem");
}

std::vector<std::string> environment() {
    std::vector<std::string> variables;
    for (char ** variable = environ; variable != nullptr && *variable != nullptr; variable++) {
        variables.emplace_back(*variable);
    }
    return variables;
}

void add(Checks & all, Checks some) { std::move(some.begin(), some.end(), std::back_inserter(all)); }

std::string work_of(const Settings & settings, const ModelState & model) {
    const std::string loads = fmt::format("it loads in mode {}", mode_name(settings.mode));
    if (settings.mode == Mode::off) {
        return loads + " and claims nothing: the engine runs as if it weren't there";
    }
    if (settings.mode == Mode::exact) {
        return loads + ", takes every graph and hands it on untouched: the engine's own numbers come out";
    }
    if (!model.opens) {
        return loads + " and takes over the attentions that it can read; -m MODEL says which";
    }
    return fmt::format("{} and takes over {} of the model's {} attentions; the engine computes all else", loads,
                       model.taken, model.attentions);
}

std::string verdict(const Settings & settings, const EngineState & engine, const PluginState & plugin,
                    const ModelState & model) {
    if (!engine.usable) {
        return "nothing: the engine doesn't work here";
    }
    if (!plugin.loads) {
        return "analyse models; llama.cpp's programs run without the plugin, since it doesn't load";
    }
    const std::string work = work_of(settings, model);
    return plugin.named ? "in llama.cpp's programs " + work
                        : "nothing in llama.cpp's programs until GGML_BACKEND_PATH names the plugin; then " + work;
}

} // namespace

bool Diagnosis::has_problem() const {
    return std::any_of(checks.begin(), checks.end(),
                       [](const Check & check) { return check.health == Health::problem; });
}

Diagnosis diagnose(const std::string & model) {
    Diagnosis result;
    Settings settings;
    EngineState engine;
    PluginState plugin;
    ModelState opened;
    add(result.checks, check_engine(engine));
    add(result.checks, check_plugin(plugin));
    add(result.checks, check_variables(environment(), settings));
    add(result.checks, check_machine(engine));
    add(result.checks, check_costs(settings));
    if (!model.empty() && engine.usable) {
        add(result.checks, check_model(model, settings, opened));
    }
    add(result.checks, check_sidecar(model, settings));
    result.verdict = verdict(settings, engine, plugin, opened);
    return result;
}

std::string diagnosis_text(const Diagnosis & diagnosis) {
    size_t longest = 0;
    for (const Check & check : diagnosis.checks) {
        longest = std::max(longest, check.name.size());
    }
    std::string text;
    for (const Check & check : diagnosis.checks) {
        text += fmt::format("{:<7}  {:<{}}  {}{}{}\n", health_name(check.health), check.name, longest, check.finding,
                            check.remedy.empty() ? "" : "; ", check.remedy);
    }
    return text + fmt::format("\nWhat cascade would do here: {}.\n", diagnosis.verdict);
}

nlohmann::json diagnosis_json(const Diagnosis & diagnosis) {
    nlohmann::json checks = nlohmann::json::array();
    for (const Check & check : diagnosis.checks) {
        checks.push_back({ { "check", check.name },
                           { "health", health_name(check.health) },
                           { "finding", check.finding },
                           { "remedy", check.remedy },
                           { "detail", check.detail } });
    }
    return { { "kind", "cascade-doctor" },
             { "version", 1 },
             { "problem", diagnosis.has_problem() },
             { "checks", checks },
             { "verdict", diagnosis.verdict } };
}

std::string first_complaint(const std::string & errors) {
    std::istringstream lines(errors);
    std::string line;
    while (std::getline(lines, line)) {
        line.erase(0, std::min(line.find_first_not_of(" \t"), line.size()));
        if (!line.empty()) {
            return line;
        }
    }
    return "no reason was given";
}

} // namespace cascade::cli
