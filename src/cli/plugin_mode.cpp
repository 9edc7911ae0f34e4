#include "cli/plugin_mode.h"

#include "cli/plugin.h"

#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

namespace cascade::cli {

namespace {

// The last summary in the plugin's statistics; an empty object where there is none.
nlohmann::json summary_in(const std::string & file) {
    nlohmann::json summary = nlohmann::json::object();
    std::ifstream lines(file);
    for (std::string line; std::getline(lines, line);) {
        auto record = nlohmann::json::parse(line, nullptr, false);
        if (record.is_object() && record.value("type", "") == "summary") {
            summary = std::move(record);
        }
    }
    return summary;
}

// In mode gated: tokens at linear inputs, those for which whole weights were read, and bytes of weights.
Reads reads_of_weights(const nlohmann::json & inputs) {
    Reads reads;
    for (const auto & [kind, counts] : inputs.items()) {
        reads.past += counts.value("tokens", 0.0);
        reads.read += counts.value("tokens", 0.0) - counts.value("passed", 0.0) - counts.value("rough", 0.0);
        reads.bytes += counts.value("bytes", 0.0);
        reads.dense_bytes += counts.value("weight_bytes", 0.0);
    }
    return reads;
}

// What the plugin read so far.
Reads reads_in(const std::string & file) {
    const nlohmann::json summary = summary_in(file);
    if (summary.contains("subspaces")) {
        return reads_of_weights(summary.at("subspaces"));
    }
    const auto covers = summary.value("on_covers", nlohmann::json::object());
    Reads reads;
    reads.past = covers.value("covered", 0.0);
    reads.read = covers.value("opened", 0.0) + covers.value("speakers", 0.0);
    reads.bytes = covers.value("bytes", 0.0);
    reads.dense_bytes = covers.value("dense_bytes", 0.0);
    return reads;
}

// A variable for as long as a context is made.
class WithVariable {
  public:
    WithVariable(const char * its_name, const std::string & value) : name(its_name) {
        if (const char * known = std::getenv(name)) {
            before = known;
        }
        setenv(name, value.c_str(), 1);
    }
    ~WithVariable() { before ? setenv(name, before->c_str(), 1) : unsetenv(name); }
    WithVariable(const WithVariable &) = delete;
    WithVariable & operator=(const WithVariable &) = delete;

  private:
    const char * name;
    std::optional<std::string> before;
};

} // namespace

void make_contexts_bare() { setenv("GGML_CASCADE", "exact", 1); }

PluginMode::PluginMode(llama_model * model, const StreamOptions & options, const MethodSpec & method)
    : statistics(new_temporary_file()) {
    setenv("GGML_CASCADE", method.name.c_str(), 1);
    setenv("GGML_CASCADE_STATS", statistics.c_str(), 1);
    // what is judged is the approximation, not where this machine uses it
    const WithVariable way("GGML_CASCADE_WAY", method.name == "gated" ? "gated" : "joint");
    if (method.options.epsilon >= 0.0) {
        setenv("GGML_CASCADE_EPS", fmt::format("{}", method.options.epsilon).c_str(), 1);
    }
    std::optional<WithVariable> sidecar;
    if (!method.sidecar.empty()) {
        sidecar.emplace("GGML_CASCADE_SIDECAR", method.sidecar);
    }
    load_plugin(find_plugin());
    context = std::make_unique<ActivationStream>(model, options);
    unsetenv("GGML_CASCADE_EPS");
    unsetenv("GGML_CASCADE_STATS");
}

PluginMode::~PluginMode() {
    context.reset();
    std::error_code ignored;
    std::filesystem::remove(statistics, ignored);
}

void PluginMode::start() {
    before = {};
    before = reads();
    context->forget_all();
}

Reads PluginMode::reads() const {
    write_plugin_summaries();
    Reads now = reads_in(statistics);
    now.past -= before.past;
    now.read -= before.read;
    now.bytes -= before.bytes;
    now.dense_bytes -= before.dense_bytes;
    return now;
}

bool PluginMode::uses_sidecar() const {
    write_plugin_summaries();
    const auto report = summary_in(statistics).value("sidecar", nlohmann::json::object());
    return report.value("used", false) && report.value("layers_unmatched", int64_t{ 0 }) == 0;
}

} // namespace cascade::cli
