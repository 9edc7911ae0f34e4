#include "analysis/paired.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace cascade::analysis {

namespace {

// Means of all pairs, each value with itself too, in order.
std::vector<double> pair_means(const std::vector<double> & values) {
    std::vector<double> means;
    means.reserve(values.size() * (values.size() + 1) / 2);
    for (size_t i = 0; i < values.size(); i++) {
        for (size_t k = i; k < values.size(); k++) {
            means.push_back((values[i] + values[k]) / 2.0);
        }
    }
    std::sort(means.begin(), means.end());
    return means;
}

struct Cut {
    size_t place = 0; // of the interval's lower end among the means of pairs
    double level = 0.0;
};

// The narrowest interval of at least that level, or the widest there is. The rank sum of n values, each positive or
// negative with even odds, takes the value w with probability chance[w].
Cut signed_rank_cut(size_t n, double level) {
    std::vector<double> chance = { 1.0 };
    for (size_t rank = 1; rank <= n; rank++) {
        std::vector<double> next(chance.size() + rank, 0.0);
        for (size_t sum = 0; sum < chance.size(); sum++) {
            next[sum] += chance[sum] / 2.0;
            next[sum + rank] += chance[sum] / 2.0;
        }
        chance = std::move(next);
    }
    constexpr double rounding = 1e-12;
    const size_t last = (chance.size() - 2) / 2; // beyond it the ends would change places
    double below = chance[0];
    Cut cut = { 0, 1.0 - (2.0 * below) };
    for (size_t place = 1; place <= last; place++) {
        below += chance[place];
        if (1.0 - (2.0 * below) < level - rounding) {
            break;
        }
        cut = { place, 1.0 - (2.0 * below) };
    }
    return cut;
}

} // namespace

double median_of(std::span<const double> values) {
    if (values.empty()) {
        return not_measured;
    }
    std::vector<double> sorted(values.begin(), values.end());
    std::sort(sorted.begin(), sorted.end());
    const size_t half = sorted.size() / 2;
    return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2.0;
}

PairedRatio paired_ratio(std::span<const double> base_seconds, std::span<const double> other_seconds, double level) {
    std::vector<double> logs;
    for (size_t i = 0; i < std::min(base_seconds.size(), other_seconds.size()); i++) {
        logs.push_back(std::log(base_seconds[i] / other_seconds[i]));
    }
    PairedRatio result;
    result.rounds = logs.size();
    if (logs.empty()) {
        return result;
    }
    const std::vector<double> means = pair_means(logs);
    result.ratio = std::exp(median_of(means));
    if (logs.size() >= 2) {
        const Cut cut = signed_rank_cut(logs.size(), level);
        result.low = std::exp(means[cut.place]);
        result.high = std::exp(means[means.size() - 1 - cut.place]);
        result.level = cut.level;
    }
    return result;
}

} // namespace cascade::analysis
