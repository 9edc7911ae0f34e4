// cascade bench: the bare engine and ours, alternated in one run.
#include "cli/bench_run.h"
#include "cli/choices.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "report/bench_report.h"
#include "report/bench_rows.h"

#include "cascade/settings.h"

#include <algorithm>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <fmt/format.h>
#include <memory>
#include <stdexcept>
#include <thread>

namespace cascade::cli {

namespace {

constexpr int interrupted_exit = 130;
constexpr int most_tokens = 1 << 24;

struct Flags {
    BenchOptions run;
    std::vector<std::string> both;
    std::string flash_attn = "both";
    std::string type_k = "f16";
    std::string type_v = "f16";
    std::string output = "md";
    std::string file;
};

const Choices<std::vector<int>> known_flash = {
    { "on", { 1 } }, { "1", { 1 } }, { "off", { 0 } }, { "0", { 0 } }, { "both", { 1, 0 } },
};

std::vector<std::string> names_of_modes() {
    std::vector<std::string> names;
    std::string name;
    for (const char c : mode_names()) {
        if (c != ',' && c != ' ') {
            name += c;
        } else if (!name.empty()) {
            names.push_back(std::exchange(name, ""));
        }
    }
    names.push_back(name);
    return names;
}

// "512,128": a prompt, then generated tokens.
std::pair<int, int> parse_both(const std::string & value) {
    int prompt = 0;
    int generated = 0;
    int read = 0;
    if (std::sscanf(value.c_str(), "%d,%d%n", &prompt, &generated, &read) != 2 ||
        static_cast<size_t>(read) != value.size() || prompt < 0 || generated < 0) {
        throw CLI::ValidationError("-pg", "'" + value + "' is not PROMPT,GENERATED, such as 512,128");
    }
    return { prompt, generated };
}

BenchOptions run_options(const Flags & flags) {
    BenchOptions options = flags.run;
    for (const std::string & value : flags.both) {
        options.both.push_back(parse_both(value));
    }
    options.flash_attn = known_flash.at(flags.flash_attn);
    options.type_k = cache_types().at(flags.type_k);
    options.type_v = cache_types().at(flags.type_v);
    if (ggml_is_quantized(options.type_v) && options.flash_attn == std::vector<int>{ 0 }) {
        throw CLI::ValidationError("-ctv",
                                   "the engine has quantised values with -fa on only: give -fa on, or -ctv f16");
    }
    options.ubatch = std::min(options.ubatch, options.batch);
    if (options.threads <= 0) {
        options.threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    }
    return options;
}

std::string rendered(const std::string & output, const report::Bench & bench) {
    if (output == "json") {
        return json_text(report::bench_json(bench));
    }
    if (output == "jsonl") {
        return report::bench_jsonl(bench);
    }
    if (output == "csv") {
        return report::bench_csv(bench);
    }
    return output == "sql" ? report::bench_sql(bench) : report::bench_table(bench);
}

void run(const Flags & flags) {
    const BenchOptions options = run_options(flags);
    check_writable(flags.file);
    report::Bench bench = cli::bench(options);
    bench.info.version = CASCADE_VERSION;
    bench.info.build_commit = CASCADE_ENGINE_COMMIT;
    bench.info.build_number = CASCADE_ENGINE_BUILD;
    if (!bench.tests.empty()) {
        write_result(flags.file, rendered(flags.output, bench));
    }
    if (!bench.complete) {
        fmt::print(stderr, "cascade: stopped; {} of {} tests have figures, the last one of fewer rounds\n",
                   bench.tests.size(), bench.wanted);
        throw CLI::RuntimeError(interrupted_exit);
    }
}

void add_test_flags(CLI::App & command, Flags & flags) {
    const auto tokens = CLI::Range(0, most_tokens);
    command.add_option("-m,--model", flags.run.model, "GGUF file")->required()->check(CLI::ExistingFile);
    command.add_option("-p,--n-prompt", flags.run.prompts, "tokens of a prompt; several: 512,2048; 0: none")
        ->delimiter(',')
        ->check(tokens)
        ->capture_default_str();
    command.add_option("-n,--n-gen", flags.run.generated, "tokens to generate; several: 32,128; 0: none")
        ->delimiter(',')
        ->check(tokens)
        ->capture_default_str();
    command.add_option("--pg", flags.both, "-pg: a prompt and generated tokens as one test: 512,128")
        ->take_all()
        ->allow_extra_args(false);
    command.add_option("-d,--n-depth", flags.run.depths, "tokens in the cache before the test; several: 0,4096")
        ->delimiter(',')
        ->check(tokens)
        ->capture_default_str();
    command.add_option("-f,--file", flags.run.text, "text to compute, instead of random tokens")
        ->check(CLI::ExistingFile);
    command.add_option("-r,--repetitions", flags.run.rounds, "rounds in which bare, control and ours take turns")
        ->check(CLI::Range(1, 500))
        ->capture_default_str();
}

void add_engine_flags(CLI::App & command, Flags & flags) {
    command.add_option("--mode", flags.run.mode, fmt::format("ours: {}", mode_names()))
        ->check(CLI::IsMember(names_of_modes()))
        ->capture_default_str();
    command.add_option("-b,--batch-size", flags.run.batch, "most tokens of a batch")
        ->check(CLI::Range(1, most_tokens))
        ->capture_default_str();
    command.add_option("--ubatch-size", flags.run.ubatch, "-ub: tokens computed at once, which is a turn")
        ->check(CLI::Range(1, most_tokens))
        ->capture_default_str();
    command.add_option("-t,--threads", flags.run.threads, "threads; 0: all")
        ->check(CLI::Range(0, 1024))
        ->capture_default_str();
    command.add_option("--cache-type-k", flags.type_k, "-ctk: type of keys in the cache")
        ->check(CLI::IsMember(names_of(cache_types())))
        ->capture_default_str();
    command.add_option("--cache-type-v", flags.type_v, "-ctv: type of values in the cache")
        ->check(CLI::IsMember(names_of(cache_types())))
        ->capture_default_str();
    command
        .add_option("--flash-attn", flags.flash_attn,
                    "-fa: on, off, or both: what is faster for the bare engine, found in a first phase")
        ->check(CLI::IsMember(names_of(known_flash)))
        ->capture_default_str();
}

void add_output_flags(CLI::App & command, Flags & flags) {
    command.add_option("-o,--output", flags.output, "md, csv, json, jsonl or sql; all but json as llama-bench")
        ->check(CLI::IsMember({ "md", "csv", "json", "jsonl", "sql" }))
        ->capture_default_str();
    command.add_option("--out", flags.file, "write there instead of to the terminal");
    command.add_option("--confidence", flags.run.level, "level of the intervals")
        ->check(CLI::Range(0.5, 0.999999))
        ->capture_default_str();
}

} // namespace

void add_bench_command(CLI::App & program) {
    auto flags = std::make_shared<Flags>();
    CLI::App * command =
        program.add_subcommand("bench", "measure the plugin against the bare engine, both in one run, turn by turn");
    add_test_flags(*command, *flags);
    add_engine_flags(*command, *flags);
    add_output_flags(*command, *flags);
    command->footer(
        "examples:\n"
        "  cascade bench -m .deps/models/smollm2-135m-instruct-q4_1.gguf -p 512 -n 32 -d 0,2048\n"
        "  cascade bench -m .deps/models/smollm2-135m-instruct-q4_1.gguf --mode reference -p 256 -ub 64 -n 0");
    command->callback([flags] { run(*flags); });
}

} // namespace cascade::cli
