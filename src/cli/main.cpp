// cascade: the program. Each subcommand has a file of its own.
#include "cli/commands.h"

#include <algorithm>
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

namespace {

constexpr int usage_error = 2;

// llama.cpp's flags of one dash and two letters, which people have in their fingers.
std::vector<std::string> with_long_names(int argc, char ** argv) {
    std::vector<std::string> args(argv + 1, argv + argc);
    std::replace(args.begin(), args.end(), std::string("-fa"), std::string("--flash-attn"));
    std::reverse(args.begin(), args.end()); // as CLI11 wants a vector
    return args;
}

} // namespace

int main(int argc, char ** argv) {
    try {
        CLI::App program("cascade: long-context acceleration for llama.cpp, and a look inside models", "cascade");
        program.set_version_flag("--version", "cascade " CASCADE_VERSION ", for ggml " CASCADE_ENGINE_VERSION
                                              " (" CASCADE_ENGINE_COMMIT ")");
        program.require_subcommand(1);
        cascade::cli::add_analyze_command(program);
        cascade::cli::add_eval_command(program);
        cascade::cli::add_graph_command(program);
        cascade::cli::add_show_command(program);
        try {
            program.parse(with_long_names(argc, argv));
        } catch (const CLI::ParseError & error) {
            const int code = program.exit(error);
            return code == 0 || error.get_name() == "RuntimeError" ? code : usage_error;
        }
        return 0;
    } catch (const std::exception & error) {
        std::fprintf(stderr, "cascade: %s\n", error.what());
        return 1;
    }
}
