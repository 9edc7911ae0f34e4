// cascade doctor: the variables of the environment, the processor and the memory.
#include "cascade/cover.h"
#include "cli/child.h"
#include "cli/cpu.h"
#include "cli/doctor.h"
#include "cli/nearest.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <set>
#include <unistd.h>

namespace cascade::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char * our_prefix = "GGML_CASCADE";

struct Variable {
    std::string name;
    std::string value;
};

std::vector<Variable> variables_of(const std::vector<std::string> & environment) {
    std::vector<Variable> variables;
    for (const std::string & line : environment) {
        const size_t equals = std::min(line.find('='), line.size());
        variables.push_back({ line.substr(0, equals), line.substr(std::min(equals + 1, line.size())) });
    }
    return variables;
}

const std::string * value_of(const std::vector<Variable> & variables, const std::string & name) {
    const auto found = std::find_if(variables.begin(), variables.end(),
                                    [&](const Variable & variable) { return variable.name == name; });
    return found != variables.end() ? &found->value : nullptr;
}

// A complaint is "what is wrong; what to do".
Check from_complaint(const std::string & complaint) {
    const size_t part = complaint.find("; ");
    return { "setting",
             Health::problem,
             complaint.substr(0, part),
             part != std::string::npos ? complaint.substr(part + 2) : "",
             {} };
}

void check_names(const std::vector<Variable> & variables, const std::set<std::string> & known, Checks & checks) {
    for (const Variable & variable : variables) {
        if (variable.name.starts_with(our_prefix) && !known.contains(variable.name)) {
            const std::string like = nearest(variable.name, { known.begin(), known.end() });
            checks.push_back({ "setting",
                               Health::problem,
                               variable.name + " means nothing to this version",
                               like.empty() ? "unset it" : "did you mean " + like + "?",
                               {} });
        }
    }
}

void check_statistics_file(const std::string & file, Checks & checks) {
    if (file.empty() || file == "-") {
        return;
    }
    const fs::path folder = fs::path(file).has_parent_path() ? fs::path(file).parent_path() : fs::path(".");
    std::error_code ignored;
    const bool there = fs::exists(file, ignored);
    if (access(there ? file.c_str() : folder.c_str(), W_OK) != 0 || fs::is_directory(file, ignored)) {
        checks.push_back({ "setting",
                           Health::problem,
                           fmt::format("GGML_CASCADE_STATS: '{}' can't be written", file),
                           "name a file in a folder that is there and yours",
                           {} });
    }
}

void check_isa(const std::vector<Variable> & variables, Checks & checks) {
    const std::string * wanted = value_of(variables, "CASCADE_ISA");
    const std::vector<const char *> known = available_isas();
    const auto is_wanted = [&](const std::string & name) { return name == *wanted; };
    if (wanted != nullptr && std::none_of(known.begin(), known.end(), is_wanted)) {
        checks.push_back({ "setting",
                           Health::problem,
                           "CASCADE_ISA=" + *wanted + " is not there",
                           fmt::format("give one of {}, or unset it", fmt::join(known, ", ")),
                           {} });
    }
}

// What the engine's kernels gain much from, by the engine's name and the processor's.
constexpr std::pair<const char *, const char *> compared[] = {
    { "AVX2", "avx2" },
    { "FMA", "fma" },
    { "F16C", "f16c" },
    { "AVX512", "avx512bw" },
    { "AVX512_VNNI", "avx512_vnni" },
    { "NEON", "asimd" },
    { "DOTPROD", "asimddp" },
};

Check check_features(const EngineState & engine, const std::vector<CpuFeature> & features) {
    Check check = { "processor", Health::ok, "", "", nlohmann::json::object() };
    std::vector<std::string> reported;
    std::vector<std::string> unused;
    for (const CpuFeature & feature : features) {
        check.detail[feature.name] = feature.enabled ? "enabled" : (feature.reported ? "reported" : "absent");
        if (feature.reported) {
            reported.push_back(feature.name + (feature.enabled ? "" : " (not enabled by the system)"));
        }
        for (const auto & [theirs, name] : compared) {
            if (feature.name == name && feature.enabled && engine.usable && !engine.has(theirs)) {
                unused.emplace_back(theirs);
            }
        }
    }
    check.finding = reported.empty() ? "no instruction set that we know by name"
                                     : fmt::format("reports {}", fmt::join(reported, " "));
    if (!unused.empty()) {
        check.health = Health::note;
        check.finding += fmt::format("; the engine was built without {}", fmt::join(unused, ", "));
        check.remedy = fmt::format("build it with -DGGML_{}=ON", fmt::join(unused, "=ON -DGGML_"));
    }
    return check;
}

Checks check_amx(const EngineState & engine) {
    const bool used = engine.has("AMX_INT8");
    switch (try_amx()) {
    case AmxTrial::absent:
        return {};
    case AmxTrial::works:
        return { { "AMX", Health::ok,
                   fmt::format("reported, and works; the engine {} it", used ? "uses" : "doesn't use"), "", "works" } };
    case AmxTrial::refused:
        return { { "AMX", Health::note, "reported, but the system refuses its registers",
                   "build the engine with -DGGML_NATIVE=OFF", "refused" } };
    default:
        return { { "AMX", used ? Health::problem : Health::note,
                   fmt::format("reported, but faults: the engine {}", used ? "will crash with it" : "leaves it alone"),
                   "build with -DGGML_NATIVE=OFF and the sets by name (cmake/HostCpu.cmake), never with AMX",
                   "faults" } };
    }
}

Check check_our_isa() {
    // In a child: a CASCADE_ISA that isn't there is said on stderr, and was reported already.
    const ChildResult result = in_child([] { return std::string(isa_in_use()); }, std::chrono::seconds(10));
    if (result.end != ChildResult::End::finished) {
        return { "our kernels",
                 Health::problem,
                 "choosing an instruction set " + result.misfortune(),
                 "set CASCADE_ISA=plain and report it",
                 {} };
    }
    const Health health = result.output == "plain" ? Health::note : Health::ok;
    return { "our kernels",
             health,
             fmt::format("{} (of {})", result.output, fmt::join(available_isas(), ", ")),
             health == Health::note ? "slow; unset CASCADE_ISA, or use a processor with AVX2 or NEON" : "",
             { { "isa", result.output }, { "available", available_isas() } } };
}

Check check_threads(const EngineState & engine) {
    const int cpus = usable_cpus();
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    const char * policy = std::getenv("OMP_WAIT_POLICY");
    Check check = { "threads",
                    Health::ok,
                    fmt::format("{} of {} processors usable", cpus, online),
                    "",
                    { { "usable", cpus }, { "online", online } } };
    if (policy != nullptr) {
        check.finding += fmt::format(", OMP_WAIT_POLICY={}", policy);
    } else if (engine.has("OPENMP")) {
        check.health = Health::note;
        check.finding += ", waiting threads spin";
        check.remedy = "where other programs share the processors, OMP_WAIT_POLICY=passive is faster";
    }
    return check;
}

Check check_memory() {
    constexpr double giga = 1024.0 * 1024.0 * 1024.0;
    const Memory found = memory();
    return { "memory",
             Health::ok,
             fmt::format("{:.1f} GiB, {:.1f} GiB of them available", static_cast<double>(found.total) / giga,
                         static_cast<double>(found.available) / giga),
             "",
             { { "total", found.total }, { "available", found.available } } };
}

} // namespace

Checks check_variables(const std::vector<std::string> & environment, Settings & settings) {
    const std::vector<Variable> variables = variables_of(environment);
    std::set<std::string> known; // whatever the settings are read from
    std::vector<std::string> complaints;
    settings = settings_from(
        [&](const char * name) {
            known.insert(name);
            const std::string * value = value_of(variables, name);
            return value != nullptr ? value->c_str() : nullptr;
        },
        complaints);
    std::vector<std::string> set;
    for (const Variable & variable : variables) {
        if (variable.name.starts_with(our_prefix)) {
            set.push_back(variable.name + "=" + variable.value);
        }
    }
    Checks checks = { { "settings",
                        Health::ok,
                        fmt::format("mode {}, {}", mode_name(settings.mode),
                                    set.empty() ? fmt::format("none of {} is set", fmt::join(known, ", "))
                                                : fmt::format("{}", fmt::join(set, ", "))),
                        "",
                        { { "mode", mode_name(settings.mode) }, { "set", set } } } };
    for (const std::string & complaint : complaints) {
        checks.push_back(from_complaint(complaint));
    }
    check_names(variables, known, checks);
    check_statistics_file(settings.stats, checks);
    check_isa(variables, checks);
    if (settings.fault != Fault::none) {
        checks.push_back({ "setting",
                           Health::note,
                           "GGML_CASCADE_FAULT makes a part of the plugin fail, for tests",
                           "unset it",
                           {} });
    }
    return checks;
}

bool EngineState::has(const std::string & feature) const {
    return std::find(features.begin(), features.end(), feature) != features.end();
}

Checks check_machine(const EngineState & engine) {
    Checks checks = { check_features(engine, cpu_features()) };
    const Checks amx = check_amx(engine);
    checks.insert(checks.end(), amx.begin(), amx.end());
    checks.push_back(check_our_isa());
    checks.push_back(check_threads(engine));
    checks.push_back(check_memory());
    return checks;
}

} // namespace cascade::cli
