// The subcommands: each adds itself to the program.
#pragma once

#include <CLI/App.hpp>

namespace cascade::cli {

void add_analyze_command(CLI::App & program);
void add_graph_command(CLI::App & program);
void add_eval_command(CLI::App & program);
void add_show_command(CLI::App & program);

} // namespace cascade::cli
