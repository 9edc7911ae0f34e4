#include "cli/plugin_mode.h"

#include "cli/plugin.h"

#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

namespace cascade::cli {

namespace {

// What the plugin read so far, by the last summary in its statistics.
Reads reads_in(const std::string & file) {
    Reads reads;
    std::ifstream lines(file);
    for (std::string line; std::getline(lines, line);) {
        const auto record = nlohmann::json::parse(line, nullptr, false);
        if (record.is_object() && record.value("type", "") == "summary" && record.contains("on_covers")) {
            const auto & covers = record["on_covers"];
            reads.past = covers.value("covered", 0.0);
            reads.read = covers.value("opened", 0.0) + covers.value("speakers", 0.0);
            reads.bytes = covers.value("bytes", 0.0);
            reads.dense_bytes = covers.value("dense_bytes", 0.0);
        }
    }
    return reads;
}

} // namespace

PluginMode::PluginMode(llama_model * model, const StreamOptions & options, const MethodSpec & method)
    : statistics(new_temporary_file()) {
    setenv("GGML_CASCADE", method.name.c_str(), 1);
    setenv("GGML_CASCADE_STATS", statistics.c_str(), 1);
    setenv("GGML_CASCADE_WAY", "joint", 0); // what is judged is the approximation, not where this machine uses it
    if (method.options.epsilon >= 0.0) {
        setenv("GGML_CASCADE_EPS", fmt::format("{}", method.options.epsilon).c_str(), 1);
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

} // namespace cascade::cli
