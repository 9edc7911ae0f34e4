// cascade eval: what a method of reading less costs in quality, beside the dense model and beside its rivals.
#include "cli/choices.h"
#include "cli/commands.h"
#include "cli/engine.h"
#include "cli/eval_run.h"
#include "cli/output.h"
#include "report/eval_json.h"
#include "report/eval_page.h"
#include "report/eval_table.h"

#include <algorithm>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

namespace cascade::cli {

namespace {

using Names = std::vector<std::string>;

const Names usual_methods = { "joint",  "refine", "proportional", "streaming", "snapkv",
                              "blocks", "quest",  "sampled",      "random",    "oracle" };

struct Flags {
    EvalOptions run;
    Names methods;
    std::vector<double> budgets;
    std::string cache_k = "f16";
    std::string cache_v = "f16";
    bool leaderboard = false;
    bool quiet_noise = false;
    std::string output = "md";
    std::string file;
};

// A method with neither budget nor options of its own is taken at every budget.
std::vector<MethodSpec> chosen_methods(const Flags & flags) {
    std::vector<double> budgets = flags.budgets;
    if (budgets.empty()) {
        budgets = flags.leaderboard ? std::vector<double>{ 0.1, 0.25 } : std::vector<double>{ 0.25 };
    }
    std::vector<MethodSpec> specs;
    const auto add = [&](const std::string & text) {
        MethodSpec spec = parse_method(text);
        const auto same = [&](const MethodSpec & other) { return other.label == spec.label; };
        if (std::none_of(specs.begin(), specs.end(), same)) {
            specs.push_back(std::move(spec));
        }
    };
    for (const std::string & text : flags.methods.empty() ? usual_methods : flags.methods) {
        if (parse_method(text).select == nullptr || text.find(':') != std::string::npos) {
            add(text);
            continue;
        }
        for (const double budget : budgets) {
            add(fmt::format("{}:{}", text, budget));
        }
    }
    return specs;
}

EvalOptions run_options(const Flags & flags) {
    EvalOptions options = flags.run;
    if (options.text.empty() && !options.retrieval) {
        throw std::invalid_argument("give a text with -f, or --retrieval");
    }
    options.lab.methods = chosen_methods(flags);
    options.lab.noise = !options.f32 && !flags.quiet_noise;
    options.lab.key_type = cache_types().at(flags.cache_k);
    options.lab.value_type = cache_types().at(flags.cache_v);
    if (options.lab.threads <= 0) {
        options.lab.threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    }
    if (options.questions.lengths.empty()) {
        options.questions.lengths = { std::min<int64_t>(options.length, 1536) };
    }
    options.questions.seed = options.lab.seed;
    return options;
}

report::EvalInfo info_of(const Flags & flags, const EvalOptions & options, const Evaluated & evaluated) {
    report::EvalInfo info;
    info.model = file_name(options.model);
    info.architecture = evaluated.architecture;
    info.weights = evaluated.weights;
    info.text = file_name(options.text);
    info.version = CASCADE_VERSION;
    info.date = today();
    info.machine = machine_name();
    info.isa = isa_in_use();
    info.command = typed_command();
    info.cache_k = flags.cache_k;
    info.cache_v = flags.cache_v;
    info.tokens = options.length;
    info.chunk = options.lab.block;
    info.window = options.lab.window;
    info.scored_from = options.length / 2;
    info.seed = options.lab.seed;
    info.windows = options.windows;
    info.complete = evaluated.complete();
    info.leaderboard = flags.leaderboard;
    return info;
}

std::string rendered(const std::string & output, const nlohmann::json & evaluation) {
    if (output == "json") {
        return json_text(evaluation);
    }
    if (output == "html") {
        return report::eval_page(evaluation);
    }
    return output == "csv" ? report::eval_csv(evaluation) : report::eval_table(evaluation);
}

void run(const Flags & flags) {
    const EvalOptions options = run_options(flags);
    check_writable(flags.file);
    if (flags.output == "html") {
        report::check_page(); // before the work, not after it
    }
    const Evaluated evaluated = evaluate_methods(options);
    if (evaluated.done > 0) {
        const nlohmann::json json = report::eval_json(info_of(flags, options, evaluated), evaluated.evaluation);
        write_result(flags.file, rendered(flags.output, json));
    }
    if (evaluated.complete()) {
        std::filesystem::remove(evaluated.kept_in);
    } else {
        throw CLI::RuntimeError(stopped("windows and questions", evaluated.done, evaluated.wanted));
    }
}

void add_input_flags(CLI::App & command, Flags & flags) {
    command.add_option("-m,--model", flags.run.model, "GGUF file")->required()->check(CLI::ExistingFile);
    command.add_option("-f,--file", flags.run.text, "text to read")->check(CLI::ExistingFile);
    command.add_option("-c,--ctx-size", flags.run.length, "tokens of a window; its second half is scored")
        ->check(CLI::Range(int64_t{ 4 }, int64_t{ 1 } << 24))
        ->capture_default_str();
    command.add_option("--windows", flags.run.windows, "windows of text")
        ->check(CLI::Range(int64_t{ 1 }, int64_t{ 1 } << 30))
        ->capture_default_str();
    command.add_option("-t,--threads", flags.run.lab.threads, "threads; 0: all")
        ->check(CLI::Range(0, 1024))
        ->capture_default_str();
    command.add_flag("--f32", flags.run.f32,
                     "weights in F32: without the noise that quantised ones make of any change, and often faster");
}

void add_method_flags(CLI::App & command, Flags & flags) {
    command.add_option("--methods", flags.methods, "NAME[:BUDGET][:OPTION=VALUE]…, or a name alone for all --budgets")
        ->delimiter(',')
        ->check([](const std::string & text) {
            try {
                parse_method(text);
                return std::string();
            } catch (const std::invalid_argument & error) {
                return std::string(error.what());
            }
        });
    command.add_option("--budgets", flags.budgets, "shares of the past that may be read; default 0.25")
        ->delimiter(',')
        ->check(CLI::Range(0.0, 1.0));
    command.add_option("--window", flags.run.lab.window, "recent tokens before a block that are always read")
        ->check(CLI::Range(int64_t{ 0 }, int64_t{ 1 } << 24))
        ->capture_default_str();
    command.add_option("--block", flags.run.lab.block, "queries that choose together")
        ->check(CLI::Range(int64_t{ 1 }, int64_t{ 1 } << 20))
        ->capture_default_str();
    command.add_option("--cache-type-k", flags.cache_k, "-ctk: the methods' cache; the dense one is f16")
        ->check(CLI::IsMember(names_of(cache_types())))
        ->capture_default_str();
    command.add_option("--cache-type-v", flags.cache_v, "-ctv")
        ->check(CLI::IsMember(names_of(cache_types())))
        ->capture_default_str();
    command.add_option("--seed", flags.run.lab.seed, "of random choices and of questions")->capture_default_str();
    command.add_flag("--no-noise", flags.quiet_noise,
                     "quantised weights: leave out the engine's own other form of attention (fa-off)");
}

void add_retrieval_flags(CLI::App & command, Flags & flags) {
    command.add_flag("--retrieval", flags.run.retrieval, "ask for things said far back in made-up texts");
    command.add_option("--tasks", flags.run.questions.tasks, "of --retrieval; default all")
        ->delimiter(',')
        ->check(CLI::IsMember(evaluate::retrieval_tasks()));
    command.add_option("--lengths", flags.run.questions.lengths, "tokens of a question; default 1536")
        ->delimiter(',')
        ->check(CLI::Range(int64_t{ 256 }, int64_t{ 1 } << 24));
    command.add_option("--questions", flags.run.questions.questions, "for each task and length")
        ->check(CLI::Range(int64_t{ 1 }, int64_t{ 1 } << 20))
        ->capture_default_str();
}

void add_output_flags(CLI::App & command, Flags & flags) {
    command.add_option("-o,--output", flags.output, "md, csv, json or html")
        ->check(CLI::IsMember({ "md", "csv", "json", "html" }))
        ->capture_default_str();
    command.add_option("--out", flags.file, "write there instead of to the terminal");
    command.add_flag("--leaderboard", flags.leaderboard, "all methods at several budgets, and who is ahead");
    command.add_flag("--resume", flags.run.resume, "go on where an interrupted run of the same settings stopped");
}

std::string methods_text() {
    std::string text = "methods:\n";
    for (const MethodAbout & method : method_list()) {
        text += fmt::format("  {:<16} {}\n", method.name, method.about);
    }
    return text;
}

} // namespace

void add_eval_command(CLI::App & program) {
    auto flags = std::make_shared<Flags>();
    flags->run.questions.lengths.clear();
    flags->run.lab.threads = 0;
    CLI::App * command =
        program.add_subcommand("eval", "measure what methods that read less of the past cost in quality");
    add_input_flags(*command, *flags);
    add_method_flags(*command, *flags);
    add_retrieval_flags(*command, *flags);
    add_output_flags(*command, *flags);
    command->footer(
        methods_text() +
        "\nexamples:\n"
        "  cascade eval -m .deps/models/smollm2-135m-instruct-q4_1.gguf -f README.md -c 1024 --windows 1 \\\n"
        "    --f32 --methods exact,joint:0.2,streaming:0.2\n"
        "  cascade eval -m .deps/models/smollm2-135m-instruct-q4_1.gguf -f docs/method.md -c 2048 \\\n"
        "    --f32 --leaderboard --retrieval -o html --out leaderboard.html");
    command->callback([flags] { run(*flags); });
}

} // namespace cascade::cli
