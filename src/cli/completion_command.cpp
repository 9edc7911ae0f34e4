// cascade completion: a shell's completion of this program's own command line.
#include "cli/commands.h"
#include "cli/completion.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <fmt/core.h>
#include <memory>

namespace cascade::cli {

void add_completion_command(CLI::App & program) {
    auto shell = std::make_shared<std::string>();
    CLI::App * command = program.add_subcommand("completion", "print a script that makes a shell complete commands");
    command->group(about_group);
    command->add_option("SHELL", *shell, "bash, zsh or fish")
        ->required()
        ->check(CLI::IsMember({ "bash", "zsh", "fish" }));
    command->footer("examples:\n"
                    "  cascade completion bash > ~/.local/share/bash-completion/completions/cascade\n"
                    "  cascade completion fish > ~/.config/fish/completions/cascade.fish");
    command->callback([&program, shell] {
        fmt::print("{}", completion_script(command_tree(program), shell_named(*shell).value_or(Shell::bash)));
    });
}

} // namespace cascade::cli
