#include "cli/man.h"

#include <algorithm>
#include <cctype>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdint>
#include <fmt/format.h>
#include <sstream>

namespace cascade::cli {

namespace {

// The character that starts at `at`, which is moved behind it. Bytes that are no UTF-8 become a question mark.
uint32_t next_character(const std::string & text, size_t & at) {
    const auto first = static_cast<unsigned char>(text[at++]);
    if (first < 0x80) {
        return first;
    }
    const int more = first >= 0xf0 ? 3 : (first >= 0xe0 ? 2 : 1);
    uint32_t code = first & (0x3fU >> static_cast<unsigned>(more));
    for (int i = 0; i < more; i++, at++) {
        if (at >= text.size() || (static_cast<unsigned char>(text[at]) & 0xc0U) != 0x80U) {
            return '?';
        }
        code = (code << 6U) | (static_cast<unsigned char>(text[at]) & 0x3fU);
    }
    return code;
}

// A dash that can be copied, a backslash that is one, letters that roff has no byte for, and no line that starts a
// request.
std::string roff(const std::string & text) {
    std::string result = text.starts_with(".") || text.starts_with("'") ? "\\&" : "";
    for (size_t at = 0; at < text.size();) {
        const uint32_t code = next_character(text, at);
        if (code == '-' || code == '\\') {
            result += code == '-' ? "\\-" : "\\e";
        } else {
            result += code < 0x80 ? std::string(1, static_cast<char>(code)) : fmt::format("\\[u{:04X}]", code);
        }
    }
    return result;
}

std::string upper(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return text;
}

std::string sentence(std::string text) {
    if (!text.empty()) {
        text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
    }
    return text + ".";
}

// Without the name that --help begins it with.
std::string description(const Command & command) {
    const std::string name = command.name + ": ";
    return command.description.starts_with(name) ? command.description.substr(name.size()) : command.description;
}

std::string option_entry(const Flag & flag) {
    std::vector<std::string> names;
    names.reserve(flag.names.size());
    for (const std::string & name : flag.names) {
        names.push_back(flag.positional ? "\\fI" + roff(name) + "\\fR" : "\\fB" + roff(name) + "\\fR");
    }
    std::string text = fmt::format(".TP\n{}", fmt::join(names, ", "));
    text += flag.positional || flag.value.empty() ? "\n" : " \\fI" + roff(flag.value) + "\\fR\n";
    text += roff(sentence(flag.description + (flag.required ? " (required)" : ""))) + "\n";
    if (lacks_choices(flag)) {
        text += roff(fmt::format("One of {}.", fmt::join(flag.choices, ", "))) + "\n";
    }
    return text + (flag.initial.empty() ? "" : roff(fmt::format("Default: {}.", flag.initial)) + "\n");
}

std::string options(const Command & command) {
    std::string text = ".SH OPTIONS\n";
    for (const Flag & flag : command.flags) {
        text += option_entry(flag);
    }
    return text;
}

std::string synopsis(const Command & command, const std::string & full_name) {
    std::string text = fmt::format(".SH SYNOPSIS\n.B {}\n", roff(full_name));
    for (const Flag & flag : command.flags) {
        text += flag.required ? roff(shortest_form(flag)) + "\n" : "";
    }
    return text + (command.commands.empty() ? "[\\fIflags\\fR]\n" : "\\fICOMMAND\\fR [\\fIflags\\fR]\n");
}

std::string examples(const Command & command) {
    if (command.examples.empty()) {
        return "";
    }
    std::string text = ".SH EXAMPLES\n.nf\n.RS 2\n";
    for (const std::string & example : command.examples) {
        text += roff(example) + "\n";
    }
    return text + ".RE\n.fi\n";
}

std::string subcommands(const Command & program) {
    std::string text = ".SH COMMANDS\n";
    for (const Command & command : program.commands) {
        text += fmt::format(".TP\n.B {}\n{} See\n.BR {} (1).\n", roff(command.name),
                            roff(sentence(description(command))), roff(program.name + "-" + command.name));
    }
    return text;
}

constexpr const char * exit_status = R"(.SH EXIT STATUS
.TP
.B 0
Done.
.TP
.B 1
Something failed; a line on standard error says what to do.
.TP
.B 2
The command line can't be understood.
.TP
.B 130
Interrupted; what is done has been written.
)";

constexpr const char * environment = R"(.SH ENVIRONMENT
.TP
.B GGML_BACKEND_PATH
The plugin, for llama.cpp's programs to load: the path of
.IR libggml\-cascade.so .
.TP
.B GGML_CASCADE
The plugin's mode;
.B cascade doctor
checks it and the other variables of that name.
)";

std::string see_also(const Command & program, const std::string & name) {
    std::vector<std::string> pages;
    if (!name.empty()) {
        pages.push_back(program.name);
    }
    for (const Command & command : program.commands) {
        if (command.name != name) {
            pages.push_back(program.name + "-" + command.name);
        }
    }
    std::string text = ".SH SEE ALSO\n";
    for (size_t i = 0; i < pages.size(); i++) {
        text += fmt::format(".BR {} (1){}\n", roff(pages[i]), i + 1 < pages.size() ? "," : "");
    }
    return text;
}

} // namespace

std::string man_page(const Command & program, const std::string & version, const std::string & name) {
    const auto found = std::find_if(program.commands.begin(), program.commands.end(),
                                    [&](const Command & command) { return command.name == name; });
    const bool whole = name.empty() || found == program.commands.end();
    const Command & command = whole ? program : *found;
    const std::string page = whole ? program.name : program.name + "-" + command.name;
    const std::string full_name = whole ? program.name : program.name + " " + command.name;
    // No date: the same program gives the same page.
    std::string text =
        fmt::format(".TH {} 1 \"\" \"{} {}\" \"User Commands\"\n", roff(upper(page)), program.name, version);
    text += fmt::format(".SH NAME\n{} \\- {}\n", roff(page), roff(description(command)));
    text += synopsis(command, full_name);
    text += ".SH DESCRIPTION\n" + roff(sentence(description(command))) + "\n";
    text += whole ? subcommands(program) : "";
    text += options(command) + examples(command) + exit_status;
    return text + (whole ? environment : "") + see_also(program, whole ? "" : command.name);
}

} // namespace cascade::cli
