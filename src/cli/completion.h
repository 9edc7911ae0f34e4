// Scripts that make a shell complete the command line.
#pragma once

#include "cli/tree.h"

#include <optional>

namespace cascade::cli {

enum class Shell { bash, zsh, fish };

std::optional<Shell> shell_named(const std::string & name);

std::string completion_script(const Command & program, Shell shell);

} // namespace cascade::cli
