#include "cli/finished_windows.h"

#include "cli/analyze_run.h"
#include "report/analysis_json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace cascade::cli {

namespace {

// Everything that a window's figures and their order depend on, but which window it is.
std::string settings_of(const AnalyzeOptions & options) {
    std::string text = file_identity(options.model) + "\n" + file_identity(options.text) + "\n";
    text += fmt::format("{}", fmt::join(analysis::figure_names, " "));
    text += fmt::format("\n{} {} {} {} {} {}", fmt::join(options.taus, ","), options.sign == Sign::kept,
                        options.per_head, options.copy_samples, options.seed, options.timing);
    for (const Source source : options.sources) {
        text += fmt::format(" {}", source_name(source));
    }
    for (const analysis::Method method : options.methods) {
        text += fmt::format(" {}", analysis::name_of(method));
    }
    return text;
}

} // namespace

FinishedWindows::FinishedWindows(const AnalyzeOptions & options)
    : file("analyze", settings_of(options), options.resume,
           [this](const nlohmann::json & line) { windows.push_back(report::window_from(line)); }) {}

const analysis::Window * FinishedWindows::find(int64_t tokens, int64_t index) const {
    for (const analysis::Window & window : windows) {
        if (window.tokens == tokens && window.index == index) {
            return &window;
        }
    }
    return nullptr;
}

void FinishedWindows::add(const analysis::Window & window) { file.add(report::window_json(window)); }

} // namespace cascade::cli
