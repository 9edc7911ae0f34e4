// cascade analyze: how many tokens of a text speak for all of them, layer by layer.
#include "cli/analyze_run.h"
#include "cli/commands.h"
#include "cli/engine.h"
#include "cli/output.h"
#include "report/analysis_json.h"
#include "report/analysis_page.h"
#include "report/analysis_table.h"

#include <algorithm>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

namespace cascade::cli {

namespace {

using Names = std::vector<std::string>;

struct Flags {
    AnalyzeOptions run;
    Names sources = { "residual" };
    Names methods = { "all" };
    Names layers = { "threshold", "linked" };
    std::string sign = "absolute";
    std::string output = "md";
    std::string file;
};

const Names known_sources = { "residual", "normalised", "key", "value" };

Names known_methods() { return { analysis::method_names.begin(), analysis::method_names.end() }; }

Names with_all(Names names, const Names & known) {
    const bool all = std::find(names.begin(), names.end(), "all") != names.end();
    return all ? known : names;
}

// The same setting twice would count as two windows.
template <typename Value>
std::vector<Value> without_repeats(const std::vector<Value> & values) {
    std::vector<Value> result;
    for (const Value & value : values) {
        if (std::find(result.begin(), result.end(), value) == result.end()) {
            result.push_back(value);
        }
    }
    return result;
}

AnalyzeOptions run_options(const Flags & flags) {
    AnalyzeOptions options = flags.run;
    options.sign = flags.sign == "signed" ? Sign::kept : Sign::ignored;
    options.sources.clear();
    for (const std::string & name : with_all(flags.sources, known_sources)) {
        const auto place = std::find(known_sources.begin(), known_sources.end(), name) - known_sources.begin();
        options.sources.push_back(static_cast<Source>(place));
    }
    for (const std::string & name : with_all(flags.methods, known_methods())) {
        if (const auto method = analysis::method_named(name)) {
            options.methods.push_back(*method);
        }
    }
    options.lengths = without_repeats(options.lengths);
    options.taus = without_repeats(options.taus);
    if (options.threads <= 0) {
        options.threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    }
    return options;
}

std::string rendered(const Flags & flags, const nlohmann::json & analysis) {
    if (flags.output == "json") {
        return json_text(analysis);
    }
    if (flags.output == "html") {
        return report::analysis_page(analysis);
    }
    return flags.output == "csv" ? report::analysis_csv(analysis)
                                 : report::analysis_table(analysis, with_all(flags.layers, known_methods()));
}

void run(const Flags & flags) {
    const AnalyzeOptions options = run_options(flags);
    check_writable(flags.file);
    if (flags.output == "html") {
        report::check_page(); // before the work, not after it
    }
    const Analyzed analyzed = analyze(options);
    if (!analyzed.windows.empty()) {
        report::AnalysisInfo info;
        info.model = file_name(options.model);
        info.architecture = analyzed.architecture;
        info.text = file_name(options.text);
        info.version = CASCADE_VERSION;
        info.date = today();
        info.isa = isa_in_use();
        info.sign = flags.sign;
        info.layers = analyzed.layers;
        info.windows = analyzed.wanted;
        info.complete = analyzed.complete();
        write_result(flags.file, rendered(flags, report::analysis_json(info, analyzed.windows)));
    }
    if (analyzed.complete()) {
        std::filesystem::remove(analyzed.kept_in);
    } else {
        throw CLI::RuntimeError(stopped("windows", static_cast<int64_t>(analyzed.windows.size()), analyzed.wanted));
    }
}

void add_input_flags(CLI::App & command, Flags & flags) {
    command.add_option("-m,--model", flags.run.model, "GGUF file")->required()->check(CLI::ExistingFile);
    command.add_option("-f,--file", flags.run.text, "text to read")->required()->check(CLI::ExistingFile);
    command.add_option("-c,--ctx-size", flags.run.lengths, "tokens of a window; several for a sweep: 512,2048")
        ->delimiter(',')
        ->check(CLI::Range(int64_t{ 2 }, int64_t{ 1 } << 24))
        ->capture_default_str();
    command.add_option("--windows", flags.run.windows, "windows of text for each length")
        ->check(CLI::Range(int64_t{ 1 }, int64_t{ 1 } << 30))
        ->capture_default_str();
    command.add_option("-t,--threads", flags.run.threads, "threads; 0: all")
        ->check(CLI::Range(0, 1024))
        ->capture_default_str();
}

void add_choice_flags(CLI::App & command, Flags & flags) {
    Names sources = known_sources;
    sources.emplace_back("all");
    Names methods = known_methods();
    methods.emplace_back("all");
    command.add_option("--tau", flags.run.taus, "Gram threshold; several for a sweep: 0.1,0.3")
        ->delimiter(',')
        ->check(CLI::Range(0.01, 0.99))
        ->capture_default_str();
    command
        .add_option("--source", flags.sources,
                    "rows to choose on: residual, normalised, key (before rotation), value, all")
        ->delimiter(',')
        ->check(CLI::IsMember(sources))
        ->capture_default_str();
    command
        .add_option(
            "--methods", flags.methods,
            "beside threshold, which always runs: leader, inherit, causal, linked, adaptive, unvalidated, random, all")
        ->delimiter(',')
        ->check(CLI::IsMember(methods))
        ->capture_default_str();
    command.add_option("--sign", flags.sign, "absolute: |G| as in the paper, or signed")
        ->check(CLI::IsMember({ "absolute", "signed" }))
        ->capture_default_str();
    command.add_flag("--per-head", flags.run.per_head, "keys and values: a cover for each KV head");
    command.add_option("--copy-samples", flags.run.copy_samples, "tokens whose copied attention is compared; 0: none")
        ->check(CLI::Range(int64_t{ 0 }, int64_t{ 1 } << 30))
        ->capture_default_str();
    command.add_option("--seed", flags.run.seed, "of the random control")->capture_default_str();
    command.add_flag("--timing", flags.run.timing, "measure the bare model's pass beside ours");
}

void add_output_flags(CLI::App & command, Flags & flags) {
    Names methods = known_methods();
    methods.insert(methods.end(), { "all", "none" });
    command.add_option("-o,--output", flags.output, "md, csv, json or html")
        ->check(CLI::IsMember({ "md", "csv", "json", "html" }))
        ->capture_default_str();
    command.add_option("--out", flags.file, "write there instead of to the terminal");
    command.add_option("--layers", flags.layers, "md: methods whose layers are listed; all, none")
        ->delimiter(',')
        ->check(CLI::IsMember(methods))
        ->capture_default_str();
    command.add_flag("--resume", flags.run.resume, "go on where an interrupted run of the same settings stopped");
}

} // namespace

void add_analyze_command(CLI::App & program) {
    auto flags = std::make_shared<Flags>();
    CLI::App * command = program.add_subcommand(
        "analyze", "show which tokens speak for all, layer by layer, and what choosing them costs");
    add_input_flags(*command, *flags);
    add_choice_flags(*command, *flags);
    add_output_flags(*command, *flags);
    command->footer(
        "examples:\n"
        "  cascade analyze -m .deps/models/smollm2-135m-instruct-q4_1.gguf -f README.md -c 512\n"
        "  cascade analyze -m .deps/models/smollm2-135m-instruct-q4_1.gguf -f docs/method.md -c 256,1024 \\\n"
        "    --tau 0.3,0.5 --source residual,key --windows 2 -o html --out report.html");
    command->callback([flags] { run(*flags); });
}

} // namespace cascade::cli
