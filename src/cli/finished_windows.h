// Windows that an analysis has finished, kept in a file until all are, so that an interrupted one can go on.
#pragma once

#include "analysis/figures.h"
#include "cli/resume_file.h"

#include <string>
#include <vector>

namespace cascade::cli {

struct AnalyzeOptions;

class FinishedWindows {
  public:
    // Reads those of an earlier run of this program with the same model, text and settings where options.resume asks
    // for it. Otherwise they are forgotten with the first window added.
    explicit FinishedWindows(const AnalyzeOptions & options);

    const analysis::Window * find(int64_t tokens, int64_t index) const;
    void add(const analysis::Window & window);
    const std::string & path() const { return file.path(); }

  private:
    std::vector<analysis::Window> windows;
    ResumeFile file;
};

} // namespace cascade::cli
