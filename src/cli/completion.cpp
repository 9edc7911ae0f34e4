#include "cli/completion.h"

#include <algorithm>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

namespace cascade::cli {

namespace {

std::string in_quotes(const std::string & text) { // bash and zsh
    std::string result = "'";
    for (const char c : text) {
        result += c == '\'' ? "'\\''" : std::string(1, c);
    }
    return result + "'";
}

std::string joined(const std::vector<std::string> & words) { return fmt::format("{}", fmt::join(words, " ")); }

// What bash does for the word after a flag that takes one.
std::string bash_value(const Flag & flag) {
    if (!flag.choices.empty()) {
        return fmt::format("words={}{}", in_quotes(joined(flag.choices)), flag.list ? " list=1" : "");
    }
    return flag.file ? "files=1" : (flag.number ? "nothing=1" : "return");
}

std::string bash_command(const Command & command) {
    std::string words = joined(names_of(command.flags));
    std::string first = joined(names_of(command.commands));
    bool files = false;
    for (const Flag & flag : command.flags) {
        first += flag.positional ? joined(flag.choices) : "";
        files = files || (flag.positional && flag.file);
    }
    return fmt::format("flags={} words={}{}", in_quotes(words), in_quotes(first), files ? " files=1" : "");
}

std::string bash_cases(const Command & command, const std::string & name) {
    std::string text;
    for (const Flag & flag : command.flags) {
        if (flag.positional || flag.value.empty()) {
            continue;
        }
        std::vector<std::string> patterns(flag.names.size());
        std::transform(flag.names.begin(), flag.names.end(), patterns.begin(),
                       [&](const std::string & one) { return in_quotes(fmt::format("{} {}", name, one)); });
        text += fmt::format("    {}) {} ;;\n", fmt::join(patterns, " | "), bash_value(flag));
    }
    return text + fmt::format("    {}*) {} ;;\n", in_quotes(name + " "), bash_command(command));
}

constexpr const char * bash_start = R"(# Completion of cascade in bash: source <(cascade completion bash)
_cascade() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    local command='' flags='' words='' files='' list='' nothing='' head='' i
    # bash makes a word of the "=" in --flag=value
    if [[ $word == = ]]; then
        word=''
    elif [[ $before == = ]]; then
        before=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        [[ ${COMP_WORDS[i]} == -* ]] || { command=${COMP_WORDS[i]} && break; }
    done
    case "$command $before" in
)";

constexpr const char * bash_end = R"(    esac
    [[ $word == -* || -z $words$files ]] && [[ -n $flags ]] && words=$flags files=''
    [[ -n $list ]] && head=${word%"${word##*,}"}
    [[ -n $nothing ]] && compopt +o default 2>/dev/null
    COMPREPLY=()
    if [[ -n $files ]]; then
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
    elif [[ -n $words ]]; then
        mapfile -t COMPREPLY < <(compgen -P "$head" -W "$words" -- "${word#"$head"}")
    fi
}
complete -o default -F _cascade cascade
)";

std::string bash_script(const Command & program) {
    std::string text = bash_start;
    for (const Command & command : program.commands) {
        text += bash_cases(command, command.name);
    }
    return text + bash_cases(program, "") + bash_end;
}

// Characters that _arguments and _describe give a meaning to.
std::string zsh_text(const std::string & text) {
    std::string result;
    for (const char c : text) {
        result += std::string("[]:\\").find(c) != std::string::npos ? std::string("\\") + c : std::string(1, c);
    }
    return result;
}

std::string zsh_value(const Flag & flag) {
    if (!flag.choices.empty() && flag.list) {
        return ":" + flag.value + ":_values -s , value " + joined(flag.choices);
    }
    if (!flag.choices.empty()) {
        return ":" + flag.value + ":(" + joined(flag.choices) + ")";
    }
    return ":" + flag.value + ":" + (flag.number ? "" : "_files");
}

// One for each name, excluding the others: braces, as people write them, would need the names outside the quotes.
std::string zsh_flag(const Flag & flag) {
    const std::string value = flag.value.empty() ? "" : zsh_value(flag);
    if (flag.positional) {
        return fmt::format(" \\\n            {}", in_quotes((flag.required ? "1" : "1:") + value));
    }
    std::string text;
    for (const std::string & name : flag.names) {
        const std::string spec =
            fmt::format("({}){}[{}]{}", joined(flag.names), name, zsh_text(flag.description), value);
        text += fmt::format(" \\\n            {}", in_quotes(spec));
    }
    return text;
}

std::string zsh_arguments(const Command & command) {
    std::string text = "_arguments";
    for (const Flag & flag : command.flags) {
        text += zsh_flag(flag);
    }
    return text;
}

std::string zsh_script(const Command & program) {
    std::string text =
        "#compdef cascade\n"
        "# Completion of cascade in zsh: as _cascade in a folder of $fpath, or source it after compinit\n"
        "_cascade() {\n"
        "    local -a commands\n"
        "    commands=(\n";
    for (const Command & command : program.commands) {
        text += fmt::format("        {}\n", in_quotes(command.name + ":" + zsh_text(command.description)));
    }
    text += fmt::format("    )\n"
                        "    if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then\n"
                        "        _describe command commands\n"
                        "        return\n"
                        "    elif (( CURRENT == 2 )); then\n"
                        "        {}\n"
                        "        return\n"
                        "    fi\n"
                        "    local command=$words[2]\n"
                        "    shift words\n"
                        "    (( CURRENT-- ))\n"
                        "    case $command in\n",
                        zsh_arguments(program));
    for (const Command & command : program.commands) {
        text += fmt::format("    {})\n        {}\n        ;;\n", command.name, zsh_arguments(command));
    }
    return text + "    esac\n"
                  "}\n"
                  "if [[ $funcstack[1] == _cascade ]]; then\n"
                  "    _cascade \"$@\"\n"
                  "else\n"
                  "    compdef _cascade cascade\n"
                  "fi\n";
}

std::string fish_quotes(const std::string & text) {
    std::string result = "'";
    for (const char c : text) {
        result += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    }
    return result + "'";
}

std::string fish_choices(const Flag & flag) {
    if (flag.list) { // what is typed up to the last comma stands before each of them
        return fmt::format(" -x -a {}", fish_quotes("(__fish_append , " + joined(flag.choices) + ")"));
    }
    return fmt::format(" -x -a {}", fish_quotes(joined(flag.choices)));
}

std::string fish_flag(const Flag & flag, const std::string & condition) {
    if (flag.positional) {
        return flag.choices.empty() ? ""
                                    : fmt::format("complete -c cascade -n {} -a {}\n", fish_quotes(condition),
                                                  fish_quotes(joined(flag.choices)));
    }
    std::string text = fmt::format("complete -c cascade -n {}", fish_quotes(condition));
    for (const std::string & name : flag.names) {
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    }
    text += " -d " + fish_quotes(flag.description);
    if (flag.value.empty()) {
        return text + "\n";
    }
    return text + (!flag.choices.empty() ? fish_choices(flag) : (flag.number ? " -x" : " -r -F")) + "\n";
}

std::string fish_script(const Command & program) {
    std::string text = "# Completion of cascade in fish: cascade completion fish | source\n"
                       "complete -c cascade -f\n";
    for (const Flag & flag : program.flags) {
        text += fish_flag(flag, "__fish_use_subcommand");
    }
    for (const Command & command : program.commands) {
        text += fmt::format("complete -c cascade -n __fish_use_subcommand -a {} -d {}\n", command.name,
                            fish_quotes(command.description));
        for (const Flag & flag : command.flags) {
            text += fish_flag(flag, "__fish_seen_subcommand_from " + command.name);
        }
    }
    return text;
}

} // namespace

std::optional<Shell> shell_named(const std::string & name) {
    if (name == "bash") {
        return Shell::bash;
    }
    if (name == "zsh") {
        return Shell::zsh;
    }
    return name == "fish" ? std::optional(Shell::fish) : std::nullopt;
}

std::string completion_script(const Command & program, Shell shell) {
    switch (shell) {
    case Shell::bash:
        return bash_script(program);
    case Shell::zsh:
        return zsh_script(program);
    default:
        return fish_script(program);
    }
}

} // namespace cascade::cli
