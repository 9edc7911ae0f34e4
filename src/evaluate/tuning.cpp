#include "evaluate/tuning.h"

#include <algorithm>
#include <cmath>

namespace cascade::evaluate {

namespace {

constexpr int most_steps = 7;
constexpr double close_enough = 1.08; // of a factor that fails over one that holds
constexpr double near_budget = -0.06; // excess of one that needs no better
constexpr double usual_slope = 1.5;   // of the excess over the factor, both in logarithms: 2 for KL, 1 for top-1
constexpr double longest_step = 4.0;  // of a factor, where nothing is known on the other side

bool is_approximated(const LayerCost & layer) { return layer.read > 0.0; }

} // namespace

std::vector<double> relative_epsilons(std::span<const LayerCost> layers) {
    double largest = 0.0;
    for (const LayerCost & layer : layers) {
        largest = std::max(largest, is_approximated(layer) ? layer.kl : 0.0);
    }
    const double least = 1e-3 * largest; // below that a KL is rounding
    std::vector<double> relative(layers.size(), 1.0);
    double sum = 0.0;
    int64_t count = 0;
    for (size_t i = 0; i < layers.size(); i++) {
        if (is_approximated(layers[i]) && largest > 0.0) {
            relative[i] = std::cbrt(layers[i].read / std::max(layers[i].kl, least));
            sum += std::log(relative[i]);
            count++;
        }
    }
    const double mean = count > 0 ? std::exp(sum / static_cast<double>(count)) : 1.0;
    for (size_t i = 0; i < layers.size(); i++) {
        if (is_approximated(layers[i]) && largest > 0.0) {
            relative[i] = std::clamp(relative[i] / mean, 1.0 / widest, widest);
        }
    }
    return relative;
}

double excess(const Budget & budget, double kl_high, double top1_low) {
    constexpr double least = 1e-9;
    if (!std::isfinite(kl_high) || !std::isfinite(top1_low)) {
        return 1.0;
    }
    const double by_kl = std::log(std::max(kl_high, least) / std::max(budget.kl, least));
    const double by_top1 = std::log(std::max(1.0 - top1_low, least) / std::max(1.0 - budget.top1, least));
    return std::max(by_kl, by_top1);
}

std::optional<double> FactorSearch::next() const {
    if (told == 0) {
        return std::min(first, most);
    }
    const bool done = told >= most_steps || (holds && (holds->excess > near_budget || holds->factor >= most)) ||
                      (holds && fails && fails->factor <= close_enough * holds->factor);
    if (done) {
        return std::nullopt;
    }
    const auto follow = [&](const Point & only) {
        constexpr double margin = 0.97; // rather inside than outside
        const double step = std::exp(-only.excess / usual_slope);
        return std::min(most, only.factor * margin * std::clamp(step, 1.0 / longest_step, longest_step));
    };
    if (!fails) {
        return holds ? follow(*holds) : first;
    }
    if (!holds) {
        return follow(*fails);
    }
    const double low = std::log(holds->factor);
    const double high = std::log(fails->factor);
    const double crossing = -holds->excess / (fails->excess - holds->excess);
    return std::exp(low + ((high - low) * std::clamp(0.95 * crossing, 0.2, 0.8)));
}

void FactorSearch::tell(double factor, double excess_of_it) {
    told++;
    if (excess_of_it <= 0.0) {
        if (!holds || factor > holds->factor) {
            holds = { factor, excess_of_it };
        }
    } else if (!fails || factor < fails->factor) {
        fails = { factor, excess_of_it };
    }
}

} // namespace cascade::evaluate
