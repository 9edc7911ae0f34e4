// cascade doctor: the engine, its backends, and the plugin in it.
#include "backend/engine.h"
#include "cli/child.h"
#include "cli/doctor.h"
#include "cli/engine.h"

#include "ggml-backend-impl.h"
#include "ggml-cpp.h"
#include "ggml.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <set>
#include <stdexcept>

namespace cascade::cli {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char * path_variable = "GGML_BACKEND_PATH";
constexpr const char * plugin_file = "libggml-cascade.so";
constexpr std::chrono::seconds patience{ 60 };

std::string plugin_path_set() {
    const char * path = std::getenv(path_variable);
    return path != nullptr ? path : "";
}

bool looks_like_ours(const std::string & path) {
    return fs::path(path).filename().string().starts_with(fs::path(plugin_file).stem().string());
}

// The engine by itself: a plugin that crashes is the plugin's check.
void start_engine_alone() {
    if (looks_like_ours(plugin_path_set())) {
        unsetenv(path_variable);
    }
    start_engine();
}

std::string library_of(ggml_backend_reg_t registry) {
    Dl_info library = {};
    const bool found = dladdr(reinterpret_cast<void *>(registry->iface.get_name), &library) != 0;
    return found && library.dli_fname != nullptr ? library.dli_fname : "";
}

json features_of(ggml_backend_reg_t registry) {
    json features = json::array();
    const auto list = reinterpret_cast<ggml_backend_get_features_t>(
        ggml_backend_reg_get_proc_address(registry, "ggml_backend_get_features"));
    for (const auto * feature = list != nullptr ? list(registry) : nullptr;
         feature != nullptr && feature->name != nullptr; feature++) {
        features.push_back(feature->name);
    }
    return features;
}

std::string look_at_backends() {
    start_engine_alone();
    json backends = json::array();
    for (size_t i = 0; i < ggml_backend_reg_count(); i++) {
        const ggml_backend_reg_t registry = ggml_backend_reg_get(i);
        json devices = json::array();
        for (size_t j = 0; j < ggml_backend_reg_dev_count(registry); j++) {
            devices.push_back(ggml_backend_dev_name(ggml_backend_reg_dev_get(registry, j)));
        }
        backends.push_back({ { "name", ggml_backend_reg_name(registry) },
                             { "file", library_of(registry) },
                             { "devices", devices },
                             { "features", features_of(registry) } });
    }
    return backends.dump();
}

Check check_version() {
    const std::string mismatch = backend::engine_mismatch(ggml_version(), ggml_commit());
    const std::string engine = fmt::format("ggml {} ({})", ggml_version(), ggml_commit());
    const json detail = { { "version", ggml_version() }, { "commit", ggml_commit() } };
    if (mismatch.empty()) {
        return { "engine", Health::ok, engine + ", the one that cascade was built for", "", detail };
    }
    return { "engine", Health::problem, engine + ": " + mismatch, "", detail };
}

Check describe_backends(const json & backends, EngineState & state) {
    std::vector<std::string> names;
    std::set<std::string> folders;
    for (const json & backend : backends) {
        names.push_back(backend["name"]);
        folders.insert(fs::path(backend["file"].get<std::string>()).parent_path().string());
        if (backend["name"] == "CPU") {
            state.features = backend["features"].get<std::vector<std::string>>();
        }
    }
    state.usable = true;
    return { "backends", Health::ok,
             fmt::format("{} in {}; the CPU's is built with {}", fmt::join(names, ", "), fmt::join(folders, " and "),
                         state.features.empty() ? "nothing it names"
                                                : fmt::format("{}", fmt::join(state.features, " "))),
             "", backends };
}

// What the engine says of a plugin: its device works, or has none in mode off.
std::string load_plugin(const std::string & path) {
    setenv("GGML_CASCADE", "exact", 0); // our programs default to off
    unsetenv(path_variable);
    start_engine();
    const ggml_backend_reg_t registry = ggml_backend_load(path.c_str());
    if (registry == nullptr) {
        throw std::runtime_error("");
    }
    if (ggml_backend_reg_dev_count(registry) > 0) {
        const ggml_backend_dev_t device = ggml_backend_reg_dev_get(registry, 0);
        if (!ggml_backend_ptr(ggml_backend_dev_init(device, nullptr))) {
            throw std::runtime_error("its device makes no backend");
        }
    }
    return ggml_backend_reg_name(registry);
}

std::string beside_the_program() {
    std::error_code failed;
    const fs::path program = fs::read_symlink("/proc/self/exe", failed);
    const fs::path file = program.parent_path() / plugin_file;
    return !failed && fs::exists(file, failed) ? file.string() : "";
}

Check check_path(const std::string & set, const std::string & beside, PluginState & state) {
    const std::string remedy = beside.empty() ? fmt::format("set it to the path of {}", plugin_file)
                                              : fmt::format("export {}={}", path_variable, beside);
    std::error_code ignored;
    if (set.empty()) {
        return { path_variable, Health::note, "not set: llama.cpp's programs run without the plugin", remedy, {} };
    }
    if (!fs::is_regular_file(set, ignored)) {
        return { path_variable, Health::problem, fmt::format("there is no file '{}'", set), remedy, set };
    }
    state.named = looks_like_ours(set);
    if (!state.named) {
        return { path_variable, Health::note, fmt::format("'{}' is another backend's", set), remedy, set };
    }
    if (fs::path(set).is_relative()) {
        return { path_variable, Health::note, fmt::format("'{}' is found from this folder only", set),
                 fmt::format("export {}={}", path_variable, fs::absolute(set).string()), set };
    }
    return { path_variable, Health::ok, set, "", set };
}

Check check_loading(const std::string & path, PluginState & state) {
    const ChildResult result = in_child([&] { return load_plugin(path); }, patience);
    const json detail = { { "file", path } };
    if (result.end == ChildResult::End::finished && result.output == "Cascade") {
        state.loads = true;
        return { "plugin", Health::ok, fmt::format("{} is built for this engine, and loads", path), "", detail };
    }
    if (result.end == ChildResult::End::finished) {
        return { "plugin", Health::problem, fmt::format("{} is the backend {}", path, result.output),
                 fmt::format("name {}", plugin_file), detail };
    }
    const bool failed = result.end == ChildResult::End::failed;
    return { "plugin", Health::problem,
             fmt::format("{} doesn't load: {}", path,
                         failed ? first_complaint(result.errors) : "it " + result.misfortune()),
             failed ? "" : "build it anew for this engine: cmake -DCASCADE_ENGINE_DIR=<its source tree>", detail };
}

} // namespace

Checks check_engine(EngineState & state) {
    Checks checks = { check_version() };
    const ChildResult result = in_child(look_at_backends, patience);
    if (result.end == ChildResult::End::finished) {
        checks.push_back(describe_backends(json::parse(result.output), state));
    } else {
        const bool failed = result.end == ChildResult::End::failed;
        checks.push_back({ "backends",
                           Health::problem,
                           failed ? first_complaint(result.errors) : "loading them " + result.misfortune(),
                           failed ? "" : "build the engine for this processor: -DGGML_NATIVE=OFF and the sets by name",
                           {} });
    }
    return checks;
}

Checks check_plugin(PluginState & state) {
    const std::string set = plugin_path_set();
    const std::string beside = beside_the_program();
    Checks checks = { check_path(set, beside, state) };
    const std::string path = state.named ? set : beside;
    if (path.empty()) {
        checks.push_back({ "plugin",
                           Health::problem,
                           fmt::format("there is no {} beside this program", plugin_file),
                           "build it (cmake --build), or set GGML_BACKEND_PATH to it",
                           {} });
    } else {
        checks.push_back(check_loading(fs::absolute(path).string(), state));
    }
    return checks;
}

} // namespace cascade::cli
