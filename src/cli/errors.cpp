#include "cli/errors.h"

#include "cli/nearest.h"
#include "cli/tree.h"

#include <algorithm>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <sstream>

namespace cascade::cli {

namespace {

std::string suggestion(const std::string & word, const std::vector<std::string> & known) {
    const std::string like = nearest(word, known);
    return like.empty() ? "" : fmt::format("; did you mean '{}'?", like);
}

// A word that nobody asked for: mistyped, or one too many.
std::string unexpected(const Command & command, const std::string & argument) {
    const std::string word = argument.substr(0, argument.find('='));
    if (word.starts_with("-")) {
        return fmt::format("there is no flag '{}'{}", word, suggestion(word, names_of(command.flags)));
    }
    if (!command.commands.empty()) {
        const std::string known = fmt::format("; give one of {}", fmt::join(names_of(command.commands), ", "));
        const std::string like = suggestion(word, names_of(command.commands));
        return fmt::format("there is no command '{}'{}", word, like.empty() ? known : like);
    }
    return fmt::format("'{}' is one word too many: leave it out, or put the flag before it that it belongs to", word);
}

std::string missing(const Command & command, const CLI::App & app) {
    if (!command.commands.empty()) {
        return fmt::format("give a command: {}", fmt::join(names_of(command.commands), ", "));
    }
    std::vector<std::string> lines;
    for (const Flag & flag : command.flags) {
        if (flag.required && app.get_option(flag.names.back())->count() == 0) {
            const std::string full = flag.names.size() > 1 ? flag.names.back() + ": " : "";
            lines.push_back(fmt::format("{} ({}{})", shortest_form(flag), full, flag.description));
        }
    }
    return lines.empty() ? "" : fmt::format("give {}", fmt::join(lines, " and "));
}

// "Value 5 not in range 0.010000 to 0.990000", without the zeros.
std::string wrong_number(const std::string & what) {
    std::istringstream words(what);
    std::string value;
    std::string word;
    double least = 0.0;
    double most = 0.0;
    if (words >> word >> value >> word >> word >> word >> least >> word >> most && word == "to") {
        return fmt::format("'{}' is no number from {} to {}", value, least, most);
    }
    return what;
}

// CLI11 says "--output: xml not in {md,json}", or "--model: File does not exist: x".
std::string wrong_value(const Command & command, const std::string & said) {
    for (const Flag & flag : command.flags) {
        for (const std::string & name : flag.names) {
            if (!said.starts_with(name + ": ")) {
                continue;
            }
            const std::string what = said.substr(name.size() + 2);
            if (const size_t end = what.find(" not in {"); end != std::string::npos && !flag.choices.empty()) {
                const std::string value = what.substr(0, end);
                return fmt::format("{}: '{}' is none of {}{}", name, value, fmt::join(flag.choices, ", "),
                                   suggestion(value, flag.choices));
            }
            if (what.starts_with("File does not exist: ")) {
                return fmt::format("{}: there is no file '{}'; give an existing one", name,
                                   what.substr(what.find(": ") + 2));
            }
            if (what.ends_with(" missing")) {
                return fmt::format("{} wants a value: {} ({})", name, shortest_form(flag), flag.description);
            }
            return fmt::format("{}: {} ({})", name, wrong_number(what), flag.description);
        }
    }
    return said;
}

std::string remark(const Command & command, const CLI::App & app, const CLI::ParseError & error) {
    // A mistyped flag is often the one that is then missing: it is what to speak of.
    if (const std::vector<std::string> left = app.remaining(); !left.empty()) {
        return unexpected(command, left.front());
    }
    if (error.get_name() == "RequiredError") {
        if (const std::string text = missing(command, app); !text.empty()) {
            return text;
        }
    }
    return wrong_value(command, error.what());
}

} // namespace

std::string explanation(const CLI::App & program, const CLI::ParseError & error) {
    const bool in_command = program.remaining().empty() && !program.get_subcommands().empty();
    const CLI::App & app = in_command ? *program.get_subcommands().front() : program;
    const Command command = command_tree(app);
    const std::string name = in_command ? program.get_name() + " " + app.get_name() : program.get_name();
    std::string text = fmt::format("{}: {}\n", name, remark(command, app, error));
    if (error.get_name() == "RequiredError" && !command.examples.empty()) {
        text += fmt::format("for example: {}\n", command.examples.front());
    }
    return text + fmt::format("see '{} --help'\n", name);
}

} // namespace cascade::cli
