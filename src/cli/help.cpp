#include "cli/help.h"

#include <algorithm>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <sstream>

namespace cascade::cli {

namespace {

constexpr size_t screen_width = 80;
constexpr size_t text_column = 26; // where the description of a flag begins

// Words in lines that end before the screen does; all but the first are indented.
std::string wrapped(const std::string & text, size_t indent, size_t first_column) {
    std::string result;
    size_t column = first_column;
    std::istringstream stream(text);
    for (std::string word; stream >> word;) {
        const bool starts = result.empty() || column == indent;
        if (!starts && column + 1 + word.size() > screen_width) {
            result += "\n" + std::string(indent, ' ');
            column = indent;
        } else if (!starts) {
            result += ' ';
            column++;
        }
        result += word;
        column += word.size();
    }
    return result;
}

// What fits into a line: the whole, or its first clauses, or its first words.
std::string first_clauses(const std::string & text, size_t width) {
    if (text.size() <= width) {
        return text;
    }
    const size_t clause = text.find_last_of(",;:", width);
    if (clause != std::string::npos && clause > 0) {
        return text.substr(0, clause);
    }
    constexpr std::string_view dots = " ...";
    const size_t word = text.rfind(' ', width - dots.size());
    return text.substr(0, word) + std::string(dots);
}

std::string flag_lines(const Flag & flag) {
    std::string left = flag.positional || flag.names.front().starts_with("--") ? "      " : "  ";
    left += fmt::format("{}", fmt::join(flag.names, ", "));
    left += flag.positional || flag.value.empty() ? "" : " " + flag.value;
    std::string text = flag.description;
    text += lacks_choices(flag) ? fmt::format(" ({})", fmt::join(flag.choices, ", ")) : "";
    text += flag.required ? " (required)" : "";
    text += flag.initial.empty() ? "" : fmt::format(" [{}]", flag.initial);
    if (left.size() + 2 > text_column) {
        left += "\n" + std::string(text_column, ' ');
    } else {
        left.resize(text_column, ' ');
    }
    return left + wrapped(text, text_column, text_column) + "\n";
}

std::string usage(const Command & command, const std::string & full_name) {
    std::string text = "Usage: " + full_name;
    for (const Flag & flag : command.flags) {
        text += flag.required ? " " + shortest_form(flag) : "";
    }
    text += " [flags]";
    for (const Flag & flag : command.flags) {
        text += flag.positional && !flag.required ? " [" + flag.names.front() + "]" : "";
    }
    return wrapped(text, 4, 0) + "\n";
}

} // namespace

std::string program_help(const Command & program) {
    size_t longest = 0;
    for (const Command & command : program.commands) {
        longest = std::max(longest, command.name.size());
    }
    std::string text = wrapped(program.description, 0, 0) + "\n\n" + "Usage: " + program.name + " COMMAND [flags]\n";
    const std::string * group = nullptr;
    for (const Command & command : program.commands) {
        if (group == nullptr || *group != command.group) {
            group = &command.group;
            text += fmt::format("\n{}:\n", group->empty() ? "Commands" : *group);
        }
        text += fmt::format("  {:<{}}  {}\n", command.name, longest,
                            first_clauses(command.description, screen_width - longest - 4));
    }
    text += fmt::format("\nFlags of the program itself: {}.\n", fmt::join(names_of(program.flags), ", "));
    return text + (program.footer.empty() ? "" : program.footer + "\n");
}

std::string command_help(const Command & command, const std::string & full_name) {
    std::string text = usage(command, full_name) + "\n" + wrapped(command.description, 0, 0) + "\n\n";
    for (const Flag & flag : command.flags) {
        text += flag.positional ? flag_lines(flag) : "";
    }
    for (const Flag & flag : command.flags) {
        text += flag.positional ? "" : flag_lines(flag);
    }
    return text + (command.footer.empty() ? "" : "\n" + command.footer + "\n");
}

void use_our_help(CLI::App & program) {
    program.formatter_fn([](const CLI::App * app, const std::string &, CLI::AppFormatMode) {
        const CLI::App * parent = app->get_parent();
        const Command command = command_tree(*app);
        return parent == nullptr ? program_help(command)
                                 : command_help(command, parent->get_name() + " " + command.name);
    });
}

} // namespace cascade::cli
