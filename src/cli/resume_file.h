// What a long run has finished, as JSON lines in the user's cache, until all of it is: so that an interrupted one can
// go on.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace cascade::cli {

class ResumeFile {
  public:
    // `settings`: everything that the results depend on. `take` gets the lines of an earlier run of this program with
    // the same settings where `resume` asks for it; what it throws makes the line ignored. Otherwise those are
    // forgotten with the first line added.
    ResumeFile(const std::string & kind, const std::string & settings, bool resume,
               const std::function<void(const nlohmann::json &)> & take);

    void add(const nlohmann::json & line); // throws std::runtime_error where it can't be written
    const std::string & path() const { return file; }

  private:
    std::string file;
    bool forget_others;
};

// Of a file that results depend on: where it is, how long, and when it was written.
std::string file_identity(const std::string & path);

// A place in the user's cache for results of this build that depend on these settings.
std::string named_place(const std::string & kind, const std::string & settings, const std::string & extension);

// The user's cache directory for this program, made where it isn't there.
std::string cache_directory();

} // namespace cascade::cli
