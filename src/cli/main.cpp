// cascade: the program. Each subcommand has a file of its own.
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/help.h"

#include <algorithm>
#include <array>
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr int usage_error = 2;

// llama.cpp's flags of one dash and several letters, which people have in their fingers.
constexpr std::array<std::pair<const char *, const char *>, 5> long_names = { {
    { "-fa", "--flash-attn" },
    { "-ub", "--ubatch-size" },
    { "-ctk", "--cache-type-k" },
    { "-ctv", "--cache-type-v" },
    { "-pg", "--pg" },
} };

std::vector<std::string> with_long_names(int argc, char ** argv) {
    std::vector<std::string> args(argv + 1, argv + argc);
    for (const auto & [name, long_name] : long_names) {
        std::replace(args.begin(), args.end(), std::string(name), std::string(long_name));
    }
    std::reverse(args.begin(), args.end()); // as CLI11 wants a vector
    return args;
}

// For tests: everything about the command line is checked, nothing is done.
void add_check_flag(CLI::App & program) {
    program.add_flag("--check-flags")->group("");
    program.parse_complete_callback([&program] {
        if (program.count("--check-flags") > 0) {
            for (CLI::App * command : program.get_subcommands(nullptr)) {
                command->callback(nullptr);
            }
        }
    });
}

int exit_code(const CLI::App & program, const CLI::ParseError & error) {
    const bool is_usage = error.get_exit_code() != 0 && error.get_name() != "RuntimeError";
    if (is_usage) {
        std::fputs(cascade::cli::explanation(program, error).c_str(), stderr);
        return usage_error;
    }
    return program.exit(error);
}

} // namespace

int main(int argc, char ** argv) {
    try {
        CLI::App program("cascade: long-context acceleration for llama.cpp, and a look inside models", "cascade");
        program.set_version_flag("--version", "cascade " CASCADE_VERSION ", for ggml " CASCADE_ENGINE_VERSION
                                              " (" CASCADE_ENGINE_COMMIT ")");
        program.require_subcommand(1);
        program.footer("'cascade COMMAND --help' has the flags of a command, and examples.\n"
                       "'cascade doctor' checks this machine and says what to do first.");
        program.set_help_flag("-h,--help", "this text");
        cascade::cli::use_our_help(program);
        add_check_flag(program);
        cascade::cli::add_eval_command(program);
        cascade::cli::add_calibrate_command(program);
        cascade::cli::add_tune_command(program);
        cascade::cli::add_bench_command(program);
        cascade::cli::add_analyze_command(program);
        cascade::cli::add_show_command(program);
        cascade::cli::add_graph_command(program);
        cascade::cli::add_doctor_command(program);
        cascade::cli::add_completion_command(program);
        cascade::cli::add_man_command(program);
        try {
            program.parse(with_long_names(argc, argv));
        } catch (const CLI::ParseError & error) {
            return exit_code(program, error);
        }
        return 0;
    } catch (const std::exception & error) {
        std::fprintf(stderr, "cascade: %s\n", error.what());
        return 1;
    }
}
