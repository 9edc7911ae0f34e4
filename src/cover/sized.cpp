// A leader cover of a wanted size: thresholds are tried until one gives it.
#include "cascade/cover.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace cascade {

namespace {

constexpr int most_tries = 12;
constexpr double near_enough = 0.97;
constexpr double smallest_tau = 0.02;
constexpr double largest_tau = 0.9995;

// Where no threshold gives few enough: the first ones of the smallest cover found, and everybody to the nearest.
Cover cut_short(const TokenRows & rows, Cover cover, int64_t count, const CoverOptions & options, Team & team) {
    cover.representatives.resize(static_cast<size_t>(count));
    return assign(rows, cover.representatives, Reach::anywhere, options, team);
}

} // namespace

Cover sized_cover(const TokenRows & rows, int64_t count, Sign sign, double & tau, Team & team) {
    double low = smallest_tau; // too many representatives from here down
    double high = largest_tau; // few enough from here up
    std::optional<Cover> best;
    double best_tau = largest_tau;
    double step = 1.08;
    tau = std::clamp(tau, smallest_tau, largest_tau);
    for (int tried = 0; tried < most_tries; tried++) {
        Cover cover = leader_cover(rows, { tau, sign }, team);
        const bool fits = cover.size() <= count;
        if (fits && (!best || cover.size() > best->size())) {
            best = std::move(cover);
            best_tau = tau;
        }
        (fits ? high : low) = tau;
        if (best && static_cast<double>(best->size()) >= near_enough * static_cast<double>(count)) {
            break;
        }
        if (high - low < 1e-6) {
            break;
        }
        // In growing steps until it is between two that were tried, then by halves.
        const double next = fits ? tau / step : tau * step;
        tau = next > low && next < high && tried < 4 ? next : (low + high) / 2.0;
        step *= step;
    }
    if (!best) {
        const CoverOptions widest = { largest_tau, sign };
        Cover cover = leader_cover(rows, widest, team);
        best = cover.size() <= count ? std::move(cover) : cut_short(rows, std::move(cover), count, widest, team);
    }
    tau = best_tau;
    return std::move(*best);
}

} // namespace cascade
