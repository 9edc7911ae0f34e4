// cascade graph: what the plugin sees in a model.
#include "cli/commands.h"
#include "cli/engine.h"
#include "cli/probe.h"
#include "graph/model_graph.h"
#include "report/graph_report.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <fmt/core.h>
#include <map>
#include <nlohmann/json.hpp>

namespace cascade::cli {

namespace {

struct GraphOptions {
    std::string model;
    std::string flash_attention = "auto";
    std::string output = "md";
};

llama_flash_attn_type flash_type(const std::string & name) {
    if (name == "on") {
        return LLAMA_FLASH_ATTN_TYPE_ENABLED;
    }
    return name == "off" ? LLAMA_FLASH_ATTN_TYPE_DISABLED : LLAMA_FLASH_ATTN_TYPE_AUTO;
}

void run(const GraphOptions & options) {
    ProbeOptions probe_options;
    probe_options.model = options.model;
    probe_options.flash_attention = flash_type(options.flash_attention);
    const auto probe = probe_model(probe_options);
    const graph::ModelGraph graph = graph::read_graph(probe->nodes);
    const report::GraphSummary summary = { file_name(options.model), probe->architecture, probe->sliding_window,
                                           static_cast<int>(probe->nodes.size()) };
    if (options.output == "json") {
        fmt::print("{}\n", report::graph_json(graph, summary).dump(2));
    } else {
        fmt::print("{}", report::graph_table(graph, summary));
    }
}

} // namespace

void add_graph_command(CLI::App & program) {
    auto options = std::make_shared<GraphOptions>();
    CLI::App * command = program.add_subcommand("graph", "show what the plugin sees in a model's graph");
    command->add_option("-m,--model", options->model, "GGUF file")->required()->check(CLI::ExistingFile);
    command->add_option("--flash-attn", options->flash_attention, "flash attention, also -fa: on, off, auto")
        ->check(CLI::IsMember({ "on", "off", "auto" }))
        ->capture_default_str();
    command->add_option("-o,--output", options->output, "md (a table) or json")
        ->check(CLI::IsMember({ "md", "json" }))
        ->capture_default_str();
    command->footer("examples:\n"
                    "  cascade graph -m .deps/models/smollm2-135m-instruct-q4_1.gguf\n"
                    "  cascade graph -m .deps/models/smollm2-135m-instruct-q4_1.gguf -fa off -o json");
    command->callback([options] { run(*options); });
}

} // namespace cascade::cli
