// cascade calibrate: bases of linear maps' inputs and the weights' images on them, in a sidecar file.
#include "cli/calibrate_run.h"
#include "cli/calibration_images.h"
#include "cli/calibration_verdict.h"
#include "cli/choices.h"
#include "cli/commands.h"
#include "cli/engine.h"
#include "cli/output.h"
#include "report/calibration_report.h"

#include <algorithm>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

namespace cascade::cli {

namespace {

const Choices<ggml_type> & image_types() {
    static const Choices<ggml_type> known = {
        { "f32", GGML_TYPE_F32 }, { "f16", GGML_TYPE_F16 }, { "q8_0", GGML_TYPE_Q8_0 }, { "q4_0", GGML_TYPE_Q4_0 }
    };
    return known;
}

const Choices<ggml_type> & rough_types() {
    static const Choices<ggml_type> known = {
        { "none", GGML_TYPE_COUNT }, { "q4_0", GGML_TYPE_Q4_0 }, { "q3_K", GGML_TYPE_Q3_K }, { "q2_K", GGML_TYPE_Q2_K }
    };
    return known;
}

const Choices<bool> & sides() {
    static const Choices<bool> known = { { "input", false }, { "output", true } };
    return known;
}

struct Flags {
    CalibrateOptions run;
    std::string basis = "input";
    std::string gate = "input";
    std::string rough = "none";
    std::string type = "f16";
    std::string report = "md";
    std::string file;
};

CalibrateOptions run_options(const Flags & flags) {
    CalibrateOptions options = flags.run;
    options.type = image_types().at(flags.type);
    options.rough = rough_types().at(flags.rough);
    options.for_output = sides().at(flags.basis);
    options.gate_output = sides().at(flags.gate);
    if (options.sidecar.empty()) {
        options.sidecar = std::filesystem::path(options.model).replace_extension(".cascade.gguf").string();
    }
    if (options.threads <= 0) {
        options.threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    }
    return options;
}

report::CalibratedRow reported(const CalibratedInput & input) {
    report::CalibratedRow row;
    row.input = input.input.name;
    row.kind = input.input.kind;
    row.layer = input.input.layer;
    row.width = input.input.width;
    row.k = input.k;
    row.maps = static_cast<int64_t>(input.input.weights.size());
    for (const int64_t k : energy_points(input)) {
        row.curve.emplace_back(k, input.values[static_cast<size_t>(k) - 1]);
    }
    row.energy = input.values[static_cast<size_t>(input.k) - 1];
    row.held_out_median = median_of(input.held_out);
    row.held_out_passing = share_within(input.held_out, gate / input.gain);
    row.spoken_for = input.inherited_gates.spoken_for();
    row.gates_agree = input.inherited_gates.agreeing(row.held_out_median);
    row.gain = input.gain;
    row.output_lost = input.output_lost;
    row.inherited_energy = input.inherited_energy;
    row.updates = input.updates;
    return row;
}

nlohmann::json json_of(const CalibrateOptions & options, const CalibrateResult & result) {
    report::CalibrationInfo info;
    info.model = file_name(options.model);
    info.text = file_name(options.text);
    info.sidecar = options.sidecar;
    info.architecture = result.architecture;
    info.weights = result.weights;
    info.images = ggml_type_name(options.type);
    info.version = CASCADE_VERSION;
    info.date = result.date;
    info.machine = machine_name();
    info.command = typed_command();
    info.tokens = result.tokens;
    info.window = options.length;
    info.passes_over_text = result.passes_over_text;
    info.sidecar_bytes = result.sidecar_bytes;
    info.gate = gate;
    info.inherit_tolerance = inherit_tolerance;
    info.prefill = result.seconds.prefill;
    info.moments = result.seconds.moments;
    info.eigenproblems = result.seconds.eigenproblems;
    info.images_seconds = result.seconds.images;
    info.held_out = result.seconds.held_out;
    info.bare_prefill = result.seconds.bare_prefill;
    std::vector<report::CalibratedRow> rows;
    rows.reserve(result.inputs.size());
    std::transform(result.inputs.begin(), result.inputs.end(), std::back_inserter(rows), reported);
    return report::calibration_json(info, rows);
}

std::string text_of(const std::string & form, const nlohmann::json & json) {
    if (form == "html") {
        return report::calibration_page(json);
    }
    return form == "json" ? json_text(json) : report::calibration_table(json);
}

void run(const Flags & flags) {
    const CalibrateOptions options = run_options(flags);
    check_writable(flags.file);
    check_writable(options.sidecar + ".part");
    std::filesystem::remove(options.sidecar + ".part");
    if (flags.report == "html") {
        report::check_page();
    }
    const CalibrateResult result = calibrate(options);
    if (!result.complete) {
        fmt::print(stderr, "cascade: stopped; the same command with --resume goes on\n");
        throw CLI::RuntimeError(130);
    }
    write_result(flags.file, text_of(flags.report, json_of(options, result)));
    if (const std::string verdict = calibration_verdict(options.model, options.sidecar); !verdict.empty()) {
        fmt::print(stderr, "cascade: {}\n", verdict);
    }
}

void add_flags(CLI::App & command, Flags & flags) {
    command.add_option("-m,--model", flags.run.model, "GGUF file")->required()->check(CLI::ExistingFile);
    command.add_option("-f,--file", flags.run.text, "text to calibrate on")->required()->check(CLI::ExistingFile);
    command.add_option("-o,--output", flags.run.sidecar,
                       "sidecar to write; default: beside the model, as NAME.cascade.gguf");
    auto * k = command.add_option("-k,--directions", flags.run.k, "directions of each basis")
                   ->check(CLI::Range(int64_t{ 1 }, int64_t{ 1 } << 20U))
                   ->capture_default_str();
    command
        .add_option("--energy", flags.run.energy,
                    "instead: as many directions as hold this share, half the width at most")
        ->check(CLI::Range(0.01, 0.9999))
        ->excludes(k);
    command.add_option("--type", flags.type, "of the images: f32, f16, q8_0 or q4_0")
        ->check(CLI::IsMember(names_of(image_types())))
        ->capture_default_str();
    command.add_option("--basis", flags.basis, "directions that hold most of the maps' input or output")
        ->check(CLI::IsMember(names_of(sides())))
        ->capture_default_str();
    command.add_option("--gate", flags.gate, "a token passes by its input's error, or by the output's by estimate")
        ->check(CLI::IsMember(names_of(sides())))
        ->capture_default_str();
    command
        .add_option("--rough", flags.rough,
                    "rough copies of the maps, for residuals that are too large to skip: none, q4_0, q3_K or q2_K")
        ->check(CLI::IsMember(names_of(rough_types())))
        ->capture_default_str();
    command.add_option("--tokens", flags.run.tokens, "tokens of the text; one more window is held out")
        ->check(CLI::Range(int64_t{ 64 }, int64_t{ 1 } << 30U))
        ->capture_default_str();
    command.add_option("-c,--ctx-size", flags.run.length, "tokens of a window")
        ->check(CLI::Range(int64_t{ 64 }, int64_t{ 1 } << 24U))
        ->capture_default_str();
    command
        .add_option("--inputs", flags.run.inputs,
                    "only these, named after the first map that reads them: attn_q,ffn_gate")
        ->delimiter(',');
    command.add_option("-t,--threads", flags.run.threads, "threads; 0: all")
        ->check(CLI::Range(0, 1024))
        ->capture_default_str();
    command
        .add_option("--memory", flags.run.memory,
                    "GiB for moments and eigenproblems; less means more passes over the text")
        ->check(CLI::Range(0.01, 1048576.0))
        ->capture_default_str();
    command.add_option("--report", flags.report, "md, json or html")
        ->check(CLI::IsMember({ "md", "json", "html" }))
        ->capture_default_str();
    command.add_option("--out", flags.file, "write the report there instead of to the terminal");
    command.add_flag("--keep", flags.run.keep,
                     "leave the moments in the cache: --resume begins another calibration on this text with them");
    command.add_flag("--resume", flags.run.resume, "go on where an interrupted run of the same settings stopped");
}

} // namespace

void add_calibrate_command(CLI::App & program) {
    auto flags = std::make_shared<Flags>();
    flags->run.threads = 0;
    CLI::App * command = program.add_subcommand(
        "calibrate", "find the directions that linear layers' inputs lie along, and keep them in a sidecar file");
    add_flags(*command, *flags);
    command->footer("examples:\n"
                    "  cascade calibrate -m .deps/models/smollm2-135m-instruct-q4_1.gguf -f docs/method.md -k 64 \\\n"
                    "    -c 512 --tokens 1024 -o smollm2.cascade.gguf\n"
                    "  cascade calibrate -m .deps/models/smollm2-135m-instruct-q4_1.gguf -f docs/quality.md \\\n"
                    "    --energy 0.9 --type q8_0 --report html --out calibration.html");
    command->callback([flags] { run(*flags); });
}

} // namespace cascade::cli
