// cascade tune: epsilons by layer for the modes that approximate, as large as their promises allow, in a sidecar file.
#include "cli/commands.h"
#include "cli/engine.h"
#include "cli/output.h"
#include "cli/sha256.h"
#include "cli/tune_run.h"
#include "report/tune_report.h"
#include "sidecar/write_subspaces.h"

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

constexpr evaluate::Budget near_promise = { 0.0055, 0.97 };
constexpr evaluate::Budget balanced_promise = { 0.03, 0.93 };

struct Flags {
    TuneOptions run;
    std::string mode = "both";
    double kl = 0.0;     // 0: the mode's own
    double top1 = -1.0;  // percent; below 0: the mode's own
    std::string sidecar; // empty: beside the model
    std::string output = "md";
    std::string file;
};

TuneOptions run_options(const Flags & flags) {
    TuneOptions options = flags.run;
    if (flags.mode == "both" && (flags.kl > 0.0 || flags.top1 >= 0.0)) {
        throw std::invalid_argument("--kl and --top1 are one mode's: give --mode near or --mode balanced too");
    }
    for (const auto & [mode, promise] : { std::pair(Mode::near, near_promise), { Mode::balanced, balanced_promise } }) {
        if (flags.mode == "both" || flags.mode == mode_name(mode)) {
            options.modes.push_back(
                { mode,
                  { flags.kl > 0.0 ? flags.kl : promise.kl, flags.top1 >= 0.0 ? flags.top1 / 100.0 : promise.top1 } });
        }
    }
    if (options.threads <= 0) {
        options.threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    }
    return options;
}

std::string sidecar_path(const Flags & flags) {
    return flags.sidecar.empty() ? std::filesystem::path(flags.run.model).replace_extension(".cascade.gguf").string()
                                 : flags.sidecar;
}

sidecar::Tuned tuned_of(const ModeResult & mode) {
    sidecar::Tuned tuned;
    if (const auto & found = mode.chosen()) {
        const evaluate::MethodSummary & measured = found->measured;
        tuned.epsilons = found->epsilons;
        tuned.kl = static_cast<float>(measured.kl);
        tuned.kl_high = static_cast<float>(measured.kl_interval.high);
        tuned.kl_budget = static_cast<float>(mode.wanted.budget.kl);
        tuned.top1 = static_cast<float>(measured.top1);
        tuned.top1_low = static_cast<float>(measured.top1_interval.low);
        tuned.top1_budget = static_cast<float>(mode.wanted.budget.top1);
        tuned.bytes_share = static_cast<float>(measured.bytes_share);
    }
    return tuned;
}

sidecar::Sidecar sidecar_of(const TuneOptions & options, const TuneResult & result) {
    sidecar::Sidecar sidecar;
    sidecar.model_sha256 = sha256_of_file(options.model);
    sidecar.fingerprints = result.fingerprints;
    sidecar.text = plain_name(options.text);
    sidecar.date = today();
    sidecar.context = static_cast<uint32_t>(options.length);
    sidecar.scored = static_cast<uint32_t>(result.windows * (options.length - 1 - (options.length / 2)));
    for (const ModeResult & mode : result.modes) {
        (mode.wanted.mode == Mode::near ? sidecar.near : sidecar.balanced) = tuned_of(mode);
    }
    return sidecar;
}

report::TunedEpsilons reported(const std::optional<Found> & found) {
    return found ? report::TunedEpsilons{ found->epsilons, found->measured } : report::TunedEpsilons();
}

nlohmann::json json_of(const TuneOptions & options, const std::string & sidecar, const TuneResult & result) {
    report::TuneInfo info;
    info.model = file_name(options.model);
    info.text = file_name(options.text);
    info.sidecar = sidecar;
    info.architecture = result.architecture;
    info.weights = result.weights;
    info.version = CASCADE_VERSION;
    info.date = today();
    info.machine = machine_name();
    info.command = typed_command();
    info.tokens = options.length;
    info.windows = result.windows;
    info.probe_windows = result.probe_windows;
    info.probe_epsilon = result.probe_epsilon;
    std::vector<report::ProbedLayers> probes;
    probes.reserve(result.probes.size());
    for (const LayerProbe & probe : result.probes) {
        probes.push_back({ probe.first, probe.last, probe.measured });
    }
    std::vector<report::TunedModeReport> modes;
    modes.reserve(result.modes.size());
    for (const ModeResult & mode : result.modes) {
        modes.push_back({ std::string(mode_name(mode.wanted.mode)), mode.wanted.budget.kl, mode.wanted.budget.top1,
                          reported(mode.by_layer), reported(mode.uniform), mode.layers_pay });
    }
    return report::tune_json(info, probes, modes);
}

void run(const Flags & flags) {
    const TuneOptions options = run_options(flags);
    const std::string path = sidecar_path(flags);
    check_writable(flags.file);
    check_writable(path + ".part");
    std::filesystem::remove(path + ".part");
    const TuneResult result = tune(options);
    if (!result.complete) {
        fmt::print(stderr, "cascade: stopped after {} measurements; the same command with --resume goes on\n",
                   result.measured);
        throw CLI::RuntimeError(130);
    }
    const sidecar::Sidecar sidecar = sidecar_of(options, result);
    if (sidecar.near.epsilons.empty() && sidecar.balanced.epsilons.empty()) {
        throw std::runtime_error(fmt::format("no epsilon keeps the promise on this text{}",
                                             options.f32 ? "" : ": where weights are quantised, try --f32"));
    }
    if (!sidecar::save_beside_subspaces(sidecar, path)) {
        throw std::runtime_error("can't write '" + path + "': give another place with --sidecar");
    }
    const nlohmann::json json = json_of(options, path, result);
    write_result(flags.file, flags.output == "json" ? json_text(json) : report::tune_table(json));
    std::filesystem::remove(result.kept_in);
}

void add_flags(CLI::App & command, Flags & flags) {
    command.add_option("-m,--model", flags.run.model, "GGUF file")->required()->check(CLI::ExistingFile);
    command.add_option("-f,--file", flags.run.text, "text to measure on")->required()->check(CLI::ExistingFile);
    command.add_option("-c,--ctx-size", flags.run.length, "tokens of a window; its second half is scored")
        ->check(CLI::Range(int64_t{ 1024 }, int64_t{ 1 } << 24))
        ->capture_default_str();
    command.add_option("--windows", flags.run.windows, "windows of text")
        ->check(CLI::Range(int64_t{ 1 }, int64_t{ 1 } << 20))
        ->capture_default_str();
    command.add_option("-t,--threads", flags.run.threads, "threads; 0: all")
        ->check(CLI::Range(0, 1024))
        ->capture_default_str();
    command.add_flag("--f32", flags.run.f32,
                     "weights in F32: the noise of quantised ones hides what a single layer costs");
    command.add_option("--mode", flags.mode, "near, balanced or both")
        ->check(CLI::IsMember({ "near", "balanced", "both" }))
        ->capture_default_str();
    command.add_option("--kl", flags.kl, "most KL divergence of one mode; default 0.0055 or 0.03")
        ->check(CLI::Range(1e-6, 10.0));
    command.add_option("--top1", flags.top1, "least share of likeliest tokens kept, in percent; default 97 or 93")
        ->check(CLI::Range(0.0, 99.99));
    command.add_option("--groups", flags.run.groups, "most groups of neighbouring layers that are probed")
        ->check(CLI::Range(int64_t{ 1 }, int64_t{ 4096 }))
        ->capture_default_str();
    command.add_option("--sidecar", flags.sidecar, "file to write; default: beside the model, as NAME.cascade.gguf");
    command.add_option("-o,--output", flags.output, "md or json")
        ->check(CLI::IsMember({ "md", "json" }))
        ->capture_default_str();
    command.add_option("--out", flags.file, "write the report there instead of to the terminal");
    command.add_flag("--resume", flags.run.resume, "go on where an interrupted run of the same settings stopped");
}

} // namespace

void add_tune_command(CLI::App & program) {
    auto flags = std::make_shared<Flags>();
    flags->run.threads = 0;
    CLI::App * command = program.add_subcommand(
        "tune", "find each layer's epsilon for the modes near and balanced, and keep them in a sidecar file");
    add_flags(*command, *flags);
    command->footer("examples:\n"
                    "  cascade tune -m .deps/models/smollm2-135m-instruct-q4_1.gguf -f docs/method.md --f32 \\\n"
                    "    --windows 2 --sidecar smollm2.cascade.gguf\n"
                    "  cascade tune -m .deps/models/smollm2-135m-instruct-q4_1.gguf -f docs/quality.md --f32 \\\n"
                    "    --mode near --kl 0.002 -o json --out tuned.json");
    command->callback([flags] { run(*flags); });
}

} // namespace cascade::cli
