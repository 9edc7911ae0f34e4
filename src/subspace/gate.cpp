#include "subspace/gate.h"

namespace cascade::subspace {

double squared_length(std::span<const float> values) {
    constexpr size_t lanes = 16; // summed apart, so that the compiler can use vectors
    double total = 0.0;
    float sums[lanes] = {};
    size_t i = 0;
    for (size_t block = 0; i + lanes <= values.size(); i += lanes, block++) {
        for (size_t lane = 0; lane < lanes; lane++) {
            sums[lane] += values[i + lane] * values[i + lane];
        }
        if (block % 64 == 63) { // before floats of unequal size meet
            for (float & sum : sums) {
                total += sum;
                sum = 0.0F;
            }
        }
    }
    for (const float sum : sums) {
        total += sum;
    }
    for (; i < values.size(); i++) {
        total += static_cast<double>(values[i]) * values[i];
    }
    return total;
}

void split_tokens(const FloatRows & inputs, const FloatRows & coordinates, int64_t tokens, const GateBounds & bounds,
                  GatedTokens & gated) {
    gated.clear();
    constexpr double rounding = 1e-2; // a basis may be stored in 16 bits
    // false for what isn't a number
    const auto is_within = [](double whole, double inside, float bound) {
        return bound > 0.0F && whole - inside <= static_cast<double>(bound) * bound * whole &&
               inside <= (1.0 + rounding) * whole;
    };
    for (int64_t token = 0; token < tokens; token++) {
        const double whole = squared_length(inputs.row(token));
        const double inside = squared_length(coordinates.row(token));
        const bool passes = is_within(whole, inside, bounds.skip);
        const bool is_rough = !passes && is_within(whole, inside, bounds.rough);
        (passes ? gated.passed : is_rough ? gated.rough : gated.refused).push_back(static_cast<int32_t>(token));
    }
}

} // namespace cascade::subspace
