// The texts of --help: one screen for the program, all flags and examples for a subcommand.
#pragma once

#include "cli/tree.h"

namespace cascade::cli {

std::string program_help(const Command & program);
std::string command_help(const Command & command, const std::string & full_name);

// Makes --help of the program and of all its subcommands, those added later as well, print them.
void use_our_help(CLI::App & program);

} // namespace cascade::cli
