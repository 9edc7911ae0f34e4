// A table in Markdown, for the terminal too: columns as wide as their widest cell.
#pragma once

#include <string>
#include <vector>

namespace cascade::report {

class Table {
  public:
    explicit Table(std::vector<std::string> header) : rows{ std::move(header) } {}
    void add(std::vector<std::string> row) { rows.push_back(std::move(row)); }
    std::string text() const;

  private:
    std::vector<std::vector<std::string>> rows;
};

} // namespace cascade::report
