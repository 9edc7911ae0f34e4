// The subcommands: each adds itself to the program.
#pragma once

#include <CLI/App.hpp>

namespace cascade::cli {

// Commands about the program itself stand under this heading, after those about models.
inline constexpr const char * about_group = "About cascade";

void add_completion_command(CLI::App & program);
void add_doctor_command(CLI::App & program);
void add_man_command(CLI::App & program);

void add_analyze_command(CLI::App & program);
void add_bench_command(CLI::App & program);
void add_calibrate_command(CLI::App & program);
void add_graph_command(CLI::App & program);
void add_eval_command(CLI::App & program);
void add_show_command(CLI::App & program);
void add_tune_command(CLI::App & program);

} // namespace cascade::cli
