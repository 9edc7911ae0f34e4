// cascade doctor: does everything fit together here, and what would cascade do?
#include "cli/commands.h"
#include "cli/doctor.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <fmt/core.h>
#include <memory>

namespace cascade::cli {

namespace {

struct DoctorOptions {
    std::string model;
    std::string output = "md";
};

void run(const DoctorOptions & options) {
    const Diagnosis diagnosis = diagnose(options.model);
    if (options.output == "json") {
        const auto replace = nlohmann::json::error_handler_t::replace;
        fmt::print("{}\n", diagnosis_json(diagnosis).dump(2, ' ', false, replace));
    } else {
        fmt::print("{}", diagnosis_text(diagnosis));
    }
    if (diagnosis.has_problem()) {
        throw CLI::RuntimeError(1);
    }
}

} // namespace

void add_doctor_command(CLI::App & program) {
    auto options = std::make_shared<DoctorOptions>();
    CLI::App * command = program.add_subcommand("doctor", "check engine, plugin, settings and processor");
    command->group(about_group);
    command->add_option("-m,--model", options->model, "GGUF file to check as well")->check(CLI::ExistingFile);
    command->add_option("-o,--output", options->output, "md (lines to read) or json")
        ->check(CLI::IsMember({ "md", "json" }))
        ->capture_default_str();
    command->footer("A problem makes the exit code 1.\n"
                    "\n"
                    "examples:\n"
                    "  cascade doctor\n"
                    "  cascade doctor -m .deps/models/smollm2-135m-instruct-q4_1.gguf -o json");
    command->callback([options] { run(*options); });
}

} // namespace cascade::cli
