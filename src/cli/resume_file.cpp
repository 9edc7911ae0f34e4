#include "cli/resume_file.h"

#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace cascade::cli {

namespace {

namespace fs = std::filesystem;

// FNV-1a.
uint64_t hash(const std::string & text) {
    uint64_t value = 14695981039346656037U;
    for (const char c : text) {
        value = (value ^ static_cast<unsigned char>(c)) * 1099511628211U;
    }
    return value;
}

void read(const std::string & file, const std::function<void(const nlohmann::json &)> & take) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
        try {
            take(nlohmann::json::parse(line));
        } catch (const std::exception &) { // empty, or cut short by a crash: that part is done again
            continue;
        }
    }
}

fs::path cache_path() {
    if (const char * cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0') {
        return fs::path(cache) / "cascade";
    }
    const char * home = std::getenv("HOME");
    return home != nullptr ? fs::path(home) / ".cache" / "cascade" : fs::temp_directory_path() / "cascade";
}

} // namespace

std::string cache_directory() {
    const fs::path directory = cache_path();
    std::error_code ignored;
    fs::create_directories(directory, ignored);
    return directory.string();
}

std::string named_place(const std::string & kind, const std::string & settings, const std::string & extension) {
    const uint64_t name = hash(settings + "\n" CASCADE_BUILD);
    return (fs::path(cache_directory()) / fmt::format("{}-{:016x}{}", kind, name, extension)).string();
}

std::string file_identity(const std::string & path) {
    return fmt::format("{} {} {}", fs::absolute(path).string(), fs::file_size(path),
                       fs::last_write_time(path).time_since_epoch().count());
}

ResumeFile::ResumeFile(const std::string & kind, const std::string & settings, bool resume,
                       const std::function<void(const nlohmann::json &)> & take)
    : forget_others(!resume) {
    file = named_place(kind, settings, ".jsonl");
    std::error_code ignored;
    if (resume) {
        read(file, take);
    } else if (fs::exists(file, ignored)) {
        fmt::print(stderr, "cascade: an interrupted run of these settings is there; --resume goes on with it\n");
    }
}

void ResumeFile::add(const nlohmann::json & line) {
    std::ofstream out(file, forget_others ? std::ios::trunc : std::ios::app);
    forget_others = false;
    // A line before it that a crash cut short has no end. Pieces of text may end inside a character.
    out << "\n" << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    out.flush();
    if (!out) {
        throw std::runtime_error("can't write '" + file + "': make room there, or set XDG_CACHE_HOME elsewhere");
    }
}

} // namespace cascade::cli
