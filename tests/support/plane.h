// Tokens in a plane, by their angles: counterexamples that can be checked with a protractor. At tau = 0.3 two tokens
// are similar up to 24.49 degrees: cos 24.49 = 0.91 = 1 - 0.3^2.
#pragma once

#include "cascade/cover.h"

#include <cmath>
#include <numbers>
#include <vector>

namespace cascade::test {

class Plane {
  public:
    explicit Plane(const std::vector<double> & degrees) {
        for (const double angle : degrees) {
            data.push_back(static_cast<float>(std::cos(angle * std::numbers::pi / 180.0)));
            data.push_back(static_cast<float>(std::sin(angle * std::numbers::pi / 180.0)));
        }
    }

    TokenRows rows() const { return { data.data(), static_cast<int64_t>(data.size() / 2), 2, 2 }; }

  private:
    std::vector<float> data;
};

} // namespace cascade::test
