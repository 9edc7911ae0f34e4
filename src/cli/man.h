// Man pages, in the macros that groff and mandoc share (man(7)).
#pragma once

#include "cli/tree.h"

namespace cascade::cli {

// The page of the program, or of one of its subcommands where `name` says which.
std::string man_page(const Command & program, const std::string & version, const std::string & name = "");

} // namespace cascade::cli
