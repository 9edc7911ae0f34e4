#include "cli/finished_windows.h"

#include "cli/analyze_run.h"
#include "report/analysis_json.h"

#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace cascade::cli {

namespace {

namespace fs = std::filesystem;

fs::path cache_directory() {
    if (const char * cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0') {
        return fs::path(cache) / "cascade";
    }
    const char * home = std::getenv("HOME");
    return home != nullptr ? fs::path(home) / ".cache" / "cascade" : fs::temp_directory_path() / "cascade";
}

std::string identity(const std::string & path) {
    return fmt::format("{} {} {}", fs::absolute(path).string(), fs::file_size(path),
                       fs::last_write_time(path).time_since_epoch().count());
}

// Everything that a window's figures and their order depend on, but which window it is.
std::string settings_of(const AnalyzeOptions & options) {
    std::string text = identity(options.model) + "\n" + identity(options.text) + "\n" CASCADE_BUILD "\n";
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

// FNV-1a.
uint64_t hash(const std::string & text) {
    uint64_t value = 14695981039346656037U;
    for (const char c : text) {
        value = (value ^ static_cast<unsigned char>(c)) * 1099511628211U;
    }
    return value;
}

} // namespace

FinishedWindows::FinishedWindows(const AnalyzeOptions & options) : forget_others(!options.resume) {
    const fs::path directory = cache_directory();
    file = (directory / fmt::format("analyze-{:016x}.jsonl", hash(settings_of(options)))).string();
    std::error_code ignored;
    fs::create_directories(directory, ignored);
    if (options.resume) {
        read();
    } else if (fs::exists(file, ignored)) {
        fmt::print(stderr, "cascade: an interrupted run of these settings is there; --resume goes on with it\n");
    }
}

void FinishedWindows::read() {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
        try {
            windows.push_back(report::window_from(nlohmann::json::parse(line)));
        } catch (const std::exception &) { // empty, or cut short by a crash: that window is done again
            continue;
        }
    }
}

const analysis::Window * FinishedWindows::find(int64_t tokens, int64_t index) const {
    for (const analysis::Window & window : windows) {
        if (window.tokens == tokens && window.index == index) {
            return &window;
        }
    }
    return nullptr;
}

void FinishedWindows::add(const analysis::Window & window) {
    std::ofstream out(file, forget_others ? std::ios::trunc : std::ios::app);
    forget_others = false;
    // A line before it that a crash cut short has no end. Pieces of text may end inside a character.
    out << "\n" << report::window_json(window).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    out.flush();
    if (!out) {
        throw std::runtime_error("can't write '" + file + "': make room there, or set XDG_CACHE_HOME elsewhere");
    }
}

} // namespace cascade::cli
