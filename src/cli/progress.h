// A line on the terminal that says where long work stands; nothing where stderr is no terminal.
#pragma once

#include <chrono>
#include <string>

namespace cascade::cli {

class Progress {
  public:
    Progress();
    ~Progress() { clear(); }
    Progress(const Progress &) = delete;
    Progress & operator=(const Progress &) = delete;

    void show(const std::string & text);
    void clear();

  private:
    bool terminal;
    bool shown = false;
    std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

} // namespace cascade::cli
