#include "report/bench.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace cascade::report {

std::string percent(double level) { return fmt::format("{:.4g} %", 100.0 * level); }

std::string BenchTest::name() const {
    std::string text = n_prompt > 0 ? fmt::format("pp{}", n_prompt) : "";
    if (n_gen > 0) {
        text += fmt::format("{}tg{}", text.empty() ? "" : "+", n_gen);
    }
    return n_depth > 0 ? fmt::format("{} @ d{}", text, n_depth) : text;
}

std::vector<double> BenchTest::speeds(const std::vector<double> & seconds) const {
    std::vector<double> result;
    std::transform(seconds.begin(), seconds.end(), std::back_inserter(result),
                   [this](double one) { return tokens() / one; });
    return result;
}

double BenchTest::median_speed(const std::vector<double> & seconds) const {
    return seconds.empty() ? 0.0 : analysis::median_of(speeds(seconds));
}

analysis::PairedRatio BenchTest::ratio(double level) const { return analysis::paired_ratio(bare, ours, level); }

analysis::PairedRatio BenchTest::control_ratio(double level) const {
    return analysis::paired_ratio(bare, control, level);
}

std::string BenchTest::warning(double level) const {
    const analysis::PairedRatio found = ratio(level);
    if (found.rounds < 2) {
        return fmt::format("{}: one round says nothing about noise; give more with -r", name());
    }
    std::string text;
    if (found.low <= 1.0 && 1.0 <= found.high) {
        text = fmt::format("{}: {:.3f} can't be told from 1, the {} interval holds it; more rounds (-r) narrow it",
                           name(), found.ratio, percent(found.level));
    }
    const analysis::PairedRatio bare_again = control_ratio(level);
    const double noise = std::max(std::abs(std::log(bare_again.low)), std::abs(std::log(bare_again.high)));
    if (text.empty() && noise > std::abs(std::log(found.ratio))) {
        text = fmt::format("{}: bare against bare came out between {:.3f} and {:.3f} in this run, so {:.3f} may be the "
                           "machine's noise; more rounds (-r) or a quieter machine tell",
                           name(), bare_again.low, bare_again.high, found.ratio);
    }
    if (!text.empty() && found.level < level) {
        text += fmt::format("; {} rounds can't give more than {}", found.rounds, percent(found.level));
    }
    return text;
}

} // namespace cascade::report
