// Errors of the command line, in words that name the flag and the remedy.
#pragma once

#include <CLI/App.hpp>
#include <string>

namespace cascade::cli {

// For a program whose parsing threw `error`: what is wrong, what to do, where to read on.
std::string explanation(const CLI::App & program, const CLI::ParseError & error);

} // namespace cascade::cli
