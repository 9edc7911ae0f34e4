#include "report/table.h"

#include <algorithm>
#include <fmt/core.h>

namespace cascade::report {

std::string Table::text() const {
    std::vector<size_t> widths(rows.front().size(), 0);
    for (const auto & row : rows) {
        for (size_t i = 0; i < row.size() && i < widths.size(); i++) {
            widths[i] = std::max(widths[i], row[i].size());
        }
    }
    std::string text;
    for (size_t r = 0; r < rows.size(); r++) {
        std::string line;
        for (size_t i = 0; i < rows[r].size() && i < widths.size(); i++) {
            line += fmt::format("{:<{}}  ", rows[r][i], widths[i]);
        }
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + "\n";
        if (r == 0) {
            text += std::string(line.size(), '-') + "\n";
        }
    }
    return text;
}

} // namespace cascade::report
