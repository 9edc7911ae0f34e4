// Sets of tokens: compared, drawn at random; and the threshold that follows their turnover.
#include "cascade/cover.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>

namespace cascade {

namespace {

int64_t common(std::span<const int32_t> a, std::span<const int32_t> b) {
    int64_t count = 0;
    for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
        count += a[i] == b[j] ? 1 : 0;
        const bool step_a = a[i] <= b[j];
        const bool step_b = b[j] <= a[i];
        i += step_a ? 1 : 0;
        j += step_b ? 1 : 0;
    }
    return count;
}

} // namespace

std::vector<int32_t> random_representatives(int64_t tokens, int64_t count, uint64_t seed) {
    if (count < 0 || count > tokens || tokens > std::numeric_limits<int32_t>::max()) {
        throw std::invalid_argument("can't draw more tokens than there are");
    }
    std::mt19937_64 random(seed); // not std's distributions: they may differ from library to library
    std::vector<int32_t> chosen;
    for (int64_t token = 0; token < tokens; token++) { // each with probability still wanted / still to come
        const auto wanted = static_cast<uint64_t>(count) - chosen.size();
        if (random() % static_cast<uint64_t>(tokens - token) < wanted) {
            chosen.push_back(static_cast<int32_t>(token));
        }
    }
    return chosen;
}

double adapted_tau(double tau, double start, double turnover, double target) {
    constexpr double widest_step = 2.0;
    constexpr double highest = 0.95;
    const double ratio = turnover > 0.0 ? std::clamp(target / turnover, 1.0 / widest_step, widest_step) : widest_step;
    const double lower = start / 2.0;
    return std::clamp(tau * std::pow(ratio, 0.25), lower, std::max(lower, std::min(2.0 * start, highest)));
}

double jaccard(std::span<const int32_t> a, std::span<const int32_t> b) {
    const int64_t both = common(a, b);
    const auto either = static_cast<int64_t>(a.size() + b.size()) - both;
    return either > 0 ? static_cast<double>(both) / static_cast<double>(either) : 1.0;
}

int64_t missing_from(std::span<const int32_t> set, std::span<const int32_t> wanted) {
    return static_cast<int64_t>(wanted.size()) - common(set, wanted);
}

} // namespace cascade
