// cascade show: results that were saved as JSON, in another form.
#include "cli/commands.h"
#include "cli/output.h"
#include "report/analysis_page.h"
#include "report/analysis_table.h"
#include "report/calibration_report.h"
#include "report/eval_page.h"
#include "report/eval_table.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace cascade::cli {

namespace {

struct Flags {
    std::string saved;
    std::string output = "md";
    std::string file;
};

std::string rendered(const nlohmann::json & json, const std::string & output) {
    const std::string kind = json.value("kind", "");
    const bool evaluation = kind == "evaluation";
    if (kind == "calibration" && output != "csv") {
        return output == "html" ? report::calibration_page(json) : report::calibration_table(json);
    }
    if (kind == "frontier" && output == "html") {
        return report::html_page("frontier.html", json);
    }
    if (!evaluation && kind != "cascade-analysis") {
        throw std::runtime_error(kind == "calibration" ? "a calibration is shown as md or html"
                                 : kind == "frontier"  ? "a frontier is shown as html: give -o html"
                                                       : "that is no result of 'cascade eval', 'cascade analyze', "
                                                         "'cascade calibrate' or scripts/frontier in JSON");
    }
    if (output == "html") {
        return evaluation ? report::eval_page(json) : report::analysis_page(json);
    }
    if (output == "csv") {
        return evaluation ? report::eval_csv(json) : report::analysis_csv(json);
    }
    return evaluation ? report::eval_table(json) : report::analysis_table(json, { "threshold", "linked" });
}

void run(const Flags & flags) {
    nlohmann::json json;
    try {
        json = nlohmann::json::parse(std::ifstream(flags.saved, std::ios::binary));
    } catch (const nlohmann::json::exception &) {
        throw std::runtime_error("'" + flags.saved + "' is no JSON: give what -o json --out FILE wrote");
    }
    try {
        write_result(flags.file, rendered(json, flags.output));
    } catch (const nlohmann::json::exception &) {
        throw std::runtime_error("'" + flags.saved + "' lacks figures: was it written by another version?");
    }
}

} // namespace

void add_show_command(CLI::App & program) {
    auto flags = std::make_shared<Flags>();
    CLI::App * command = program.add_subcommand("show", "saved JSON results as a table, CSV or page");
    command->add_option("saved", flags->saved, "what -o json --out FILE wrote")->required()->check(CLI::ExistingFile);
    command->add_option("-o,--output", flags->output, "md, csv or html")
        ->check(CLI::IsMember({ "md", "csv", "html" }))
        ->capture_default_str();
    command->add_option("--out", flags->file, "write there instead of to the terminal");
    command->footer("examples:\n"
                    "  cascade show evaluation.json\n"
                    "  cascade show evaluation.json -o html --out leaderboard.html");
    command->callback([flags] { run(*flags); });
}

} // namespace cascade::cli
