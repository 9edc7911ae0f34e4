#include "cli/plugin.h"

#include "cascade/settings.h"

#include "ggml-backend.h"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <unistd.h>

namespace cascade::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char * library = "libggml-cascade.so";
constexpr const char * registry_name = "Cascade";

std::string variable(const char * name) {
    const char * value = std::getenv(name);
    return value != nullptr ? value : "";
}

// A part's name and the seconds in one of its units: "seconds_reading", "microseconds_ours".
bool is_time(std::string_view field, std::string & part, double & unit) {
    constexpr std::array<std::pair<std::string_view, double>, 2> units = { { { "seconds_", 1.0 },
                                                                             { "microseconds_", 1e-6 } } };
    for (const auto & [prefix, seconds] : units) {
        if (field.substr(0, prefix.size()) == prefix) {
            part = field.substr(prefix.size());
            unit = seconds;
            return true;
        }
    }
    return false;
}

} // namespace

std::string new_temporary_file() {
    std::string name = (fs::temp_directory_path() / "cascade-XXXXXX").string();
    const int file = ::mkstemp(name.data());
    if (file < 0) {
        throw std::runtime_error("can't write to " + fs::temp_directory_path().string() +
                                 ": name another folder with TMPDIR");
    }
    ::close(file);
    return name;
}

std::string find_plugin() {
    if (fs::path(variable("GGML_BACKEND_PATH")).filename() == library) {
        unsetenv("GGML_BACKEND_PATH");
    }
    const std::string wanted = variable("GGML_CASCADE_PLUGIN");
    const fs::path path =
        wanted.empty() ? fs::canonical("/proc/self/exe").parent_path() / library : fs::absolute(wanted);
    if (!fs::is_regular_file(path)) {
        throw std::runtime_error(fmt::format("{}no plugin '{}': {}",
                                             wanted.empty() ? "" : "GGML_CASCADE_PLUGIN: ", path.string(),
                                             wanted.empty() ? "build the target ggml-cascade, or set "
                                                              "GGML_CASCADE_PLUGIN to libggml-cascade.so"
                                                            : "give the path of libggml-cascade.so"));
    }
    return path.string();
}

void load_plugin(const std::string & path) {
    if (ggml_backend_reg_by_name(registry_name) != nullptr) {
        return;
    }
    ggml_backend_reg_t registry = ggml_backend_load(path.c_str());
    const bool off = parse_mode(variable("GGML_CASCADE")) == Mode::off;
    if (registry == nullptr || (!off && ggml_backend_reg_dev_count(registry) == 0)) {
        throw std::runtime_error("the plugin '" + path +
                                 "' did not load: build it together with this program, or set GGML_CASCADE_PLUGIN to "
                                 "one that was built for this engine");
    }
}

void write_plugin_summaries() {
    ggml_backend_reg_t registry = ggml_backend_reg_by_name(registry_name);
    void * function =
        registry != nullptr ? ggml_backend_reg_get_proc_address(registry, "cascade_write_summaries") : nullptr;
    if (function != nullptr) {
        reinterpret_cast<void (*)()>(function)();
    }
}

PluginFigures operator-(const PluginFigures & after, const PluginFigures & before) {
    PluginFigures result = after;
    for (const auto & [part, seconds] : before.seconds) {
        result.seconds[part] -= seconds;
    }
    result.failures -= before.failures;
    return result;
}

PluginFigures read_figures(const std::string & statistics_file) {
    PluginFigures result;
    std::ifstream file(statistics_file);
    for (std::string line; std::getline(file, line);) {
        const auto record = nlohmann::json::parse(line, nullptr, false);
        if (!record.is_object() || record.value("type", "") != "summary") {
            continue;
        }
        result = {};
        result.failures = record.value("failures", int64_t{ 0 });
        for (const auto & [field, value] : record.items()) {
            std::string part;
            double unit = 0.0;
            if (value.is_number() && is_time(field, part, unit)) {
                result.seconds[part] = value.get<double>() * unit;
            }
        }
    }
    return result;
}

Plugin::Plugin(const std::string & path, const std::string & mode) {
    if (ggml_backend_reg_by_name(registry_name) != nullptr) {
        throw std::runtime_error("the plugin was loaded before the bare contexts were made: unset GGML_BACKEND_PATH");
    }
    Settings settings;
    settings.mode = parse_mode(mode).value_or(Mode::exact);
    setenv("GGML_CASCADE", mode.c_str(), 1);
    unsetenv("GGML_CASCADE_STATS");
    if (settings.rewrites()) {
        statistics = new_temporary_file();
        setenv("GGML_CASCADE_STATS", statistics.c_str(), 1);
    }
    try {
        load_plugin(path);
    } catch (...) {
        remove_statistics();
        throw;
    }
}

Plugin::~Plugin() { remove_statistics(); }

void Plugin::remove_statistics() const {
    std::error_code ignored;
    fs::remove(statistics, ignored);
}

PluginFigures Plugin::figures() const {
    if (statistics.empty()) {
        return {};
    }
    write_plugin_summaries();
    return read_figures(statistics);
}

} // namespace cascade::cli
