#include "report/table.h"

#include <algorithm>

namespace cascade::report {

namespace {

// Of UTF-8: every byte but those that go on with a letter.
size_t letters(const std::string & text) {
    return static_cast<size_t>(std::count_if(text.begin(), text.end(),
                                             [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

} // namespace

std::string Table::text() const {
    std::vector<size_t> widths(rows.front().size(), 0);
    for (const auto & row : rows) {
        for (size_t i = 0; i < row.size() && i < widths.size(); i++) {
            widths[i] = std::max(widths[i], letters(row[i]));
        }
    }
    std::string text;
    for (size_t r = 0; r < rows.size(); r++) {
        std::string line = "|";
        std::string rule = "|";
        for (size_t i = 0; i < rows[r].size() && i < widths.size(); i++) {
            line += " " + rows[r][i] + std::string(widths[i] - letters(rows[r][i]), ' ') + " |";
            rule += std::string(widths[i] + 2, '-') + "|";
        }
        text += line + "\n" + (r == 0 ? rule + "\n" : "");
    }
    return text;
}

} // namespace cascade::report
