// Help, errors, completions and man pages of a made-up program: each must follow from its CLI11 tree alone.
#include "cli/completion.h"
#include "cli/errors.h"
#include "cli/help.h"
#include "cli/man.h"
#include "cli/nearest.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <gtest/gtest.h>
#include <sstream>

namespace cascade::cli {
namespace {

class Tree : public testing::Test {
  protected:
    void SetUp() override {
        program.require_subcommand(1);
        use_our_help(program);
        CLI::App * boil = program.add_subcommand(
            "boil", "boil water in a pot of any size, for tea or for eggs, and say how long it took to get there");
        boil->add_option("-p,--pot", pot, "the pot's file")->required()->check(CLI::ExistingFile);
        boil->add_option("--for", uses, "tea, eggs")->delimiter(',')->check(CLI::IsMember({ "tea", "eggs" }));
        boil->add_option("--litres", litres, "how much, ½ or more…")
            ->check(CLI::Range(0.5, 2.0))
            ->capture_default_str();
        boil->add_flag("--lid", lid, "with a lid: it's faster [much]");
        boil->add_flag("--secret", secret, "not for everybody")->group("");
        boil->footer("examples:\n  cascade boil -p a.pot\n  cascade boil -p b.pot \\\n    --for tea,eggs");
        CLI::App * about = program.add_subcommand("about", "say something");
        about->group("About cascade");
        about->add_option("WHAT", what, "about what")->required()->check(CLI::IsMember({ "pots", "water" }));
        program.add_subcommand("hidden", "not for everybody")->group("");
    }

    std::string error_of(std::vector<std::string> words) {
        std::reverse(words.begin(), words.end());
        try {
            program.parse(words);
        } catch (const CLI::ParseError & error) {
            return explanation(program, error);
        }
        return "";
    }

    std::string first_line(const std::vector<std::string> & words) {
        const std::string text = error_of(words);
        return text.substr(0, text.find('\n'));
    }

    CLI::App program{ "cascade: a kitchen", "cascade" };
    std::string pot, what;
    std::vector<std::string> uses;
    double litres = 1.0;
    bool lid = false, secret = false;
};

TEST_F(Tree, is_read_with_all_that_is_visible) {
    const Command tree = command_tree(program);
    ASSERT_EQ(names_of(tree.commands), (std::vector<std::string>{ "boil", "about" }));
    const Command & boil = tree.commands[0];
    EXPECT_EQ(names_of(boil.flags),
              (std::vector<std::string>{ "-h", "--help", "-p", "--pot", "--for", "--litres", "--lid" }));
    EXPECT_TRUE(boil.flags[1].file && boil.flags[1].required && boil.flags[1].value == "FILE");
    EXPECT_EQ(boil.flags[2].choices, (std::vector<std::string>{ "tea", "eggs" }));
    EXPECT_TRUE(boil.flags[2].list && !boil.flags[1].list);
    EXPECT_TRUE(boil.flags[3].number && boil.flags[3].initial == "1");
    EXPECT_EQ(boil.flags[4].value, "");
    EXPECT_EQ(boil.examples,
              (std::vector<std::string>{ "cascade boil -p a.pot", "cascade boil -p b.pot --for tea,eggs" }));
    EXPECT_EQ(tree.commands[1].flags[1].names, (std::vector<std::string>{ "WHAT" }));
}

TEST_F(Tree, help_has_one_line_for_each_command) {
    const std::string help = program.help();
    EXPECT_NE(help.find("  boil   boil water in a pot of any size, for tea or for eggs\n"), std::string::npos) << help;
    EXPECT_NE(help.find("About cascade:\n  about  say something\n"), std::string::npos) << help;
    EXPECT_EQ(help.find("hidden"), std::string::npos);
}

TEST_F(Tree, help_of_a_command_fits_the_screen) {
    const std::string help = program.get_subcommand("boil")->help();
    std::istringstream lines(help);
    for (std::string line; std::getline(lines, line);) {
        EXPECT_LE(line.size(), 80U) << line;
    }
    EXPECT_NE(help.find("  -p, --pot FILE          the pot's file (required)\n"), std::string::npos) << help;
    EXPECT_NE(help.find("      --litres N          how much, ½ or more… [1]\n"), std::string::npos) << help;
    EXPECT_EQ(help.find("--secret"), std::string::npos);
}

TEST_F(Tree, errors_name_the_flag_and_the_remedy) {
    EXPECT_EQ(first_line({}), "cascade: give a command: boil, about");
    EXPECT_EQ(first_line({ "biol", "-p", "x" }), "cascade: there is no command 'biol'; did you mean 'boil'?");
    EXPECT_EQ(first_line({ "fry" }), "cascade: there is no command 'fry'; give one of boil, about");
    EXPECT_EQ(first_line({ "boil" }), "cascade boil: give -p FILE (--pot: the pot's file)");
    EXPECT_EQ(first_line({ "boil", "--pto=x" }), "cascade boil: there is no flag '--pto'; did you mean '--pot'?");
    EXPECT_EQ(first_line({ "boil", "-p", "/none" }),
              "cascade boil: --pot: there is no file '/none'; give an existing one");
    EXPECT_EQ(first_line({ "boil", "-p", "/dev/null", "--for", "egs" }),
              "cascade boil: --for: 'egs' is none of tea, eggs; did you mean 'eggs'?");
    EXPECT_EQ(first_line({ "boil", "-p", "/dev/null", "--litres", "9" }),
              "cascade boil: --litres: '9' is no number from 0.5 to 2 (how much, ½ or more…)");
    EXPECT_EQ(first_line({ "boil", "-p" }), "cascade boil: --pot wants a value: -p FILE (the pot's file)");
    EXPECT_EQ(first_line({ "about" }), "cascade about: give WHAT (about what)");
    EXPECT_NE(error_of({ "boil" }).find("for example: cascade boil -p a.pot\nsee 'cascade boil --help'\n"),
              std::string::npos);
}

TEST_F(Tree, completions_know_every_flag_and_choice) {
    const Command tree = command_tree(program);
    for (const Shell shell : { Shell::bash, Shell::zsh, Shell::fish }) {
        const std::string script = completion_script(tree, shell);
        for (const char * word : { "boil", "about", "pot", "lid", "litres", "tea", "eggs", "pots", "water" }) {
            EXPECT_NE(script.find(word), std::string::npos) << word << " in\n" << script;
        }
        EXPECT_EQ(script.find("secret"), std::string::npos);
        EXPECT_EQ(script.find("hidden"), std::string::npos);
    }
    EXPECT_NE(completion_script(tree, Shell::zsh).find("it'\\''s faster \\[much\\]"), std::string::npos);
    EXPECT_NE(completion_script(tree, Shell::fish).find("it\\'s faster"), std::string::npos);
    EXPECT_FALSE(shell_named("tcsh").has_value());
}

TEST_F(Tree, man_pages_escape_what_roff_would_take) {
    const Command tree = command_tree(program);
    const std::string page = man_page(tree, "1.2", "boil");
    EXPECT_TRUE(page.starts_with(".TH CASCADE\\-BOIL 1 \"\" \"cascade 1.2\"")) << page;
    EXPECT_NE(page.find("\\fB\\-p\\fR, \\fB\\-\\-pot\\fR \\fIFILE\\fR\n"), std::string::npos) << page;
    EXPECT_NE(page.find("cascade boil \\-p b.pot \\-\\-for tea,eggs\n"), std::string::npos) << page;
    EXPECT_NE(page.find("How much, \\[u00BD] or more\\[u2026].\n"), std::string::npos) << page;
    EXPECT_NE(man_page(tree, "1.2").find(".BR cascade\\-about (1)"), std::string::npos);
}

TEST(Nearest, is_what_was_meant) {
    const std::vector<std::string> known = { "--windows", "--model", "-m", "-f" };
    EXPECT_EQ(nearest("--winodws", known), "--windows");
    EXPECT_EQ(nearest("--win", known), "--windows");
    EXPECT_EQ(nearest("--mdoel", known), "--model");
    EXPECT_EQ(nearest("--xyzzy", known), "");
    EXPECT_EQ(nearest("", {}), "");
}

} // namespace
} // namespace cascade::cli
