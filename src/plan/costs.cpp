#include "plan/costs.h"

#include <algorithm>
#include <cmath>

namespace cascade {

namespace {

constexpr int64_t step_of_engine = 256; // tokens by which the engine's view of its cache grows

double on_line(double x, double x0, double y0, double x1, double y1) { return y0 + ((y1 - y0) * (x - x0) / (x1 - x0)); }

// A cost doesn't fall with what there is to do; where two measurements say so, it was the machine's noise.
double by_tokens(const std::array<double, CostTable::tokens.size()> & seconds, int64_t tokens) {
    const auto at = static_cast<double>(tokens);
    const double found = on_line(at, static_cast<double>(CostTable::tokens[0]), seconds[0],
                                 static_cast<double>(CostTable::tokens[1]), std::max(seconds[0], seconds[1]));
    return std::max(found, 0.25 * seconds[0]);
}

} // namespace

double CostTable::seconds(Way way, int64_t queries_at_once, int64_t tokens_in_cache) const {
    const Seconds & measured = (*this)[way];
    const size_t low = queries_at_once < queries[1] ? 0 : 1;
    const double first = by_tokens(measured[low], tokens_in_cache);
    const double second = by_tokens(measured[low + 1], tokens_in_cache);
    return on_line(static_cast<double>(queries_at_once), static_cast<double>(queries[low]), first,
                   static_cast<double>(queries[low + 1]), std::max(first, second));
}

bool CostTable::is_plausible() const {
    constexpr double most = 3600.0;
    bool all = true;
    for (const Seconds & way : of_way) {
        for (const auto & row : way) {
            all = all &&
                  std::all_of(row.begin(), row.end(), [](double seconds) { return seconds > 0.0 && seconds < most; });
        }
    }
    // hundreds of times the work: what doesn't show that was measured while the machine did something else
    const auto grows = [&](Way way) { return (*this)[way].back().back() > 2.0 * (*this)[way].front().front(); };
    return all && grows(Way::engine) && grows(Way::fast);
}

void CostTable::merge(const CostTable & measured_again) {
    for (size_t way = 0; way < of_way.size(); way++) {
        for (size_t q = 0; q < queries.size(); q++) {
            for (size_t t = 0; t < tokens.size(); t++) {
                of_way[way][q][t] = std::min(of_way[way][q][t], measured_again.of_way[way][q][t]);
            }
        }
    }
    times_measured += measured_again.times_measured;
}

int64_t CostTable::covers_pay_from(double opened, int64_t queries_at_once, int64_t most) const {
    int64_t from = 0;
    for (int64_t tokens_now = most; tokens_now > 0; tokens_now -= step_of_engine) {
        const double joint = seconds_on_cover(opened, queries_at_once, tokens_now);
        if (joint >= std::min(seconds(Way::engine, queries_at_once, tokens_now),
                              seconds(Way::fast, queries_at_once, tokens_now))) {
            break;
        }
        from = tokens_now;
    }
    return from;
}

} // namespace cascade
