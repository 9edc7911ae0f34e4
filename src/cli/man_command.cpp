// cascade man: the man pages of this program.
#include "cli/commands.h"
#include "cli/man.h"

#include <algorithm>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <memory>
#include <stdexcept>

namespace cascade::cli {

namespace {

struct ManOptions {
    std::string command;
    std::string folder; // write all pages there
};

// The subcommands as they are when it is asked, since more may be added after this one.
class IsCommand : public CLI::Validator {
  public:
    explicit IsCommand(const CLI::App & program) {
        desc_function_ = [&program] { return fmt::format("{{{}}}", fmt::join(command_names(program), ",")); };
        func_ = [&program, describe = desc_function_](std::string & name) {
            const std::vector<std::string> known = command_names(program);
            return std::find(known.begin(), known.end(), name) == known.end() ? name + " not in " + describe() : "";
        };
    }
};

void write_page(const std::filesystem::path & file, const std::string & page) {
    std::ofstream out(file, std::ios::binary);
    out << page;
    out.flush();
    if (!out) {
        throw std::runtime_error("can't write '" + file.string() + "'");
    }
}

void write_all(const Command & program, const std::filesystem::path & folder) {
    std::filesystem::create_directories(folder);
    write_page(folder / (program.name + ".1"), man_page(program, CASCADE_VERSION));
    for (const Command & command : program.commands) {
        write_page(folder / (program.name + "-" + command.name + ".1"),
                   man_page(program, CASCADE_VERSION, command.name));
    }
}

} // namespace

void add_man_command(CLI::App & program) {
    auto options = std::make_shared<ManOptions>();
    CLI::App * command = program.add_subcommand("man", "print the man page of the program or of a command");
    command->group(about_group);
    command->add_option("COMMAND", options->command, "whose page; without it the program's")->check(IsCommand(program));
    command->add_option("--all", options->folder, "write all pages to this folder instead");
    command->footer("examples:\n"
                    "  cascade man analyze | man -l -\n"
                    "  cascade man --all ~/.local/share/man/man1");
    command->callback([&program, options] {
        const Command tree = command_tree(program);
        if (options->folder.empty()) {
            fmt::print("{}", man_page(tree, CASCADE_VERSION, options->command));
        } else {
            write_all(tree, options->folder);
        }
    });
}

} // namespace cascade::cli
