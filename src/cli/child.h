// Work in a child process: what crashes, aborts or hangs there is an answer, not the end of this program.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace cascade::cli {

struct ChildResult {
    enum class End {
        finished, // `output` is what the work returned
        failed,   // it threw; `errors` ends with the message
        crashed,  // by signal `code`, or it left with exit code `code`
        too_long,
    };
    End end = End::failed;
    int code = 0;
    std::string output;
    std::string errors; // what it wrote to stderr; what it wrote to stdout is dropped

    // "crashed (Illegal instruction)", for a sentence; empty where it finished.
    std::string misfortune() const;
};

// Only while this process has a single thread. Throws std::runtime_error where the system gives no process.
ChildResult in_child(const std::function<std::string()> & work, std::chrono::seconds limit);

} // namespace cascade::cli
