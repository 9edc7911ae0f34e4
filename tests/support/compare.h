// How far two results are apart.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace cascade::test {

// ||a - b|| / ||a||
inline double relative_error(const std::vector<float> & a, const std::vector<float> & b) {
    double difference = 0.0;
    double norm = 0.0;
    for (size_t i = 0; i < a.size(); i++) {
        difference += std::pow(static_cast<double>(a[i]) - b[i], 2);
        norm += std::pow(static_cast<double>(a[i]), 2);
    }
    return std::sqrt(difference / std::max(norm, 1e-30));
}

} // namespace cascade::test
