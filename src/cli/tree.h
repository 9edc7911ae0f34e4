// The command line as plain data, read off the CLI11 tree. Help, errors, completions and man pages are all made from
// it, so that a new subcommand or flag is in each of them at once.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

namespace cascade::cli {

struct Flag {
    std::vector<std::string> names; // "-m", "--model"; of a positional its one name, without dashes
    std::string description;
    std::string value; // what to give it, such as "FILE" or "N"; empty: it takes nothing
    std::vector<std::string> choices;
    std::string initial; // what it is where it isn't given
    bool positional = false;
    bool required = false;
    bool file = false;   // must name an existing file
    bool number = false; // of any kind
    bool list = false;   // takes several, parted by commas
};

struct Command {
    std::string name; // "cascade", "analyze"
    std::string description;
    std::string group;  // empty: the usual one
    std::string footer; // as the subcommand gives it
    std::vector<Flag> flags;
    std::vector<std::string> examples; // from the footer, each on one line
    std::vector<Command> commands;     // those of the usual group first
};

// Whatever is hidden (its group is empty) is left out.
Command command_tree(const CLI::App & app);

// "-m FILE", "--windows N", "SHELL": the shortest way to give it.
std::string shortest_form(const Flag & flag);

// Its description doesn't name them all, as is good style: they are to be listed beside it.
bool lacks_choices(const Flag & flag);

std::vector<std::string> command_names(const CLI::App & program); // without reading their flags
std::vector<std::string> names_of(const std::vector<Command> & commands);
std::vector<std::string> names_of(const std::vector<Flag> & flags); // without positionals

} // namespace cascade::cli
