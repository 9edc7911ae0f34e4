#include "cli/nearest.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace cascade::cli {

namespace {

// Edits that turn one word into the other; two neighbours that changed places are one edit.
size_t distance(const std::string & a, const std::string & b) {
    std::vector<size_t> before_last;
    std::vector<size_t> last(b.size() + 1);
    std::iota(last.begin(), last.end(), size_t{ 0 });
    for (size_t i = 1; i <= a.size(); i++) {
        std::vector<size_t> row(b.size() + 1, i);
        for (size_t j = 1; j <= b.size(); j++) {
            row[j] = std::min({ last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1] ? 1 : 0) });
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = std::min(row[j], before_last[j - 2] + 1);
            }
        }
        before_last = std::exchange(last, row);
    }
    return last.back();
}

} // namespace

std::string nearest(const std::string & word, const std::vector<std::string> & known) {
    constexpr size_t letters_for_an_edit = 3;
    std::string best;
    size_t least = std::max<size_t>(1, word.size() / letters_for_an_edit) + 1;
    for (const std::string & one : known) {
        const bool begun = word.size() >= letters_for_an_edit && one.starts_with(word); // as long options are shortened
        const size_t edits = begun ? 1 : distance(word, one);
        if (edits < least) {
            least = edits;
            best = one;
        }
    }
    return best;
}

} // namespace cascade::cli
