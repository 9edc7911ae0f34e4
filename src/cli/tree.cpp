#include "cli/tree.h"

#include <algorithm>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <sstream>

namespace cascade::cli {

namespace {

// CLI11's name of the group that a subcommand without one is in.
constexpr const char * usual_group = "Subcommands";

std::vector<std::string> split(const std::string & text, char at) {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, at);) {
        parts.push_back(part);
    }
    return parts;
}

// CLI11 describes a value as its type and each check of it, parted by colons: "TEXT:FILE", "TEXT:{md,json}", "INT:INT
// in [2 - 9]". Its checks can't be asked in another way.
void read_value(const CLI::Option & option, Flag & flag) {
    const std::string type = option.get_type_name();
    const size_t open = type.find('{');
    const size_t close = type.find('}', open);
    if (open != std::string::npos && close != std::string::npos) {
        flag.choices = split(type.substr(open + 1, close - open - 1), ',');
    }
    const std::vector<std::string> parts = split(type, ':');
    flag.file = std::find(parts.begin(), parts.end(), "FILE") != parts.end();
    const std::string kind = parts.empty() ? "" : parts.front();
    flag.number = kind == "INT" || kind == "UINT" || kind == "FLOAT";
    flag.list = option.get_delimiter() == ',';
    flag.value = flag.file ? "FILE" : (flag.number ? "N" : (flag.choices.empty() ? "TEXT" : "NAME"));
    flag.value += flag.list ? ",..." : "";
}

std::string without_brackets(std::string text) {
    if (text.size() >= 2 && text.front() == '[' && text.back() == ']') { // CLI11's way to write a vector
        text = text.substr(1, text.size() - 2);
    }
    return text;
}

Flag read_flag(const CLI::Option & option) {
    Flag flag;
    flag.description = option.get_description();
    flag.positional = option.get_positional();
    flag.required = option.get_required();
    flag.initial = without_brackets(option.get_default_str());
    if (option.get_items_expected_max() > 0) {
        read_value(option, flag);
    }
    if (flag.positional) {
        flag.names = { option.get_name(true) };
        return flag;
    }
    for (const std::string & name : option.get_snames()) {
        flag.names.push_back("-" + name);
    }
    for (const std::string & name : option.get_lnames()) {
        flag.names.push_back("--" + name);
    }
    return flag;
}

std::vector<const CLI::App *> visible_commands(const CLI::App & app) {
    return app.get_subcommands(
        [](const CLI::App * sub) { return !sub->get_group().empty() && !sub->get_name().empty(); });
}

// Lines of the footer that begin with the program's name, joined where a backslash ends one.
std::vector<std::string> read_examples(const std::string & footer) {
    std::vector<std::string> examples;
    bool goes_on = false;
    for (std::string line : split(footer, '\n')) {
        line.erase(0, std::min(line.find_first_not_of(' '), line.size()));
        const bool starts = line.starts_with("cascade ");
        if (!starts && !goes_on) {
            continue;
        }
        const bool was_going_on = goes_on;
        goes_on = line.ends_with('\\');
        line.erase(line.find_last_not_of(" \\") + 1);
        if (was_going_on) {
            examples.back() += " " + line;
        } else {
            examples.push_back(line);
        }
    }
    return examples;
}

} // namespace

Command command_tree(const CLI::App & app) {
    Command command;
    command.name = app.get_name();
    command.description = app.get_description();
    command.group = app.get_group() == usual_group ? "" : app.get_group();
    command.footer = app.get_footer();
    command.examples = read_examples(command.footer);
    for (const CLI::Option * option : app.get_options()) {
        if (!option->get_group().empty()) {
            command.flags.push_back(read_flag(*option));
        }
    }
    for (const CLI::App * sub : visible_commands(app)) {
        command.commands.push_back(command_tree(*sub));
    }
    std::stable_partition(command.commands.begin(), command.commands.end(),
                          [](const Command & sub) { return sub.group.empty(); });
    return command;
}

std::string shortest_form(const Flag & flag) {
    return flag.positional || flag.value.empty() ? flag.names.front() : flag.names.front() + " " + flag.value;
}

bool lacks_choices(const Flag & flag) {
    return std::any_of(flag.choices.begin(), flag.choices.end(),
                       [&](const std::string & choice) { return flag.description.find(choice) == std::string::npos; });
}

std::vector<std::string> command_names(const CLI::App & program) {
    std::vector<std::string> names;
    for (const CLI::App * command : visible_commands(program)) {
        names.push_back(command->get_name());
    }
    return names;
}

std::vector<std::string> names_of(const std::vector<Command> & commands) {
    std::vector<std::string> names;
    names.reserve(commands.size());
    for (const Command & command : commands) {
        names.push_back(command.name);
    }
    return names;
}

std::vector<std::string> names_of(const std::vector<Flag> & flags) {
    std::vector<std::string> names;
    for (const Flag & flag : flags) {
        if (!flag.positional) {
            names.insert(names.end(), flag.names.begin(), flag.names.end());
        }
    }
    return names;
}

} // namespace cascade::cli
