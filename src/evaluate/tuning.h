// Which epsilon each layer gets, out of what each layer costs alone. Numbers only: who measures is somebody else.
//
// Near a small epsilon a layer's KL grows with its square, and what is read falls with the first power. The least
// reading for a given sum of KLs then has epsilons in proportion to (read / KL)^(1/3) of the layers; one common factor
// is left, which is searched until the whole model's KL and top-1 are what was promised.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace cascade::evaluate {

// A layer approximated alone, all of them at the same epsilon.
struct LayerCost {
    double kl = 0.0;
    double read = 0.0; // tokens; 0: the layer is not approximated at all
};

// In proportion as above, their geometric mean 1 over the layers that are approximated; 1 for the others. No layer is
// trusted to be more than `widest` times better or worse than the mean: single layers are measured with noise.
constexpr double widest = 4.0;
std::vector<double> relative_epsilons(std::span<const LayerCost> layers);

struct Budget {
    double kl = 0.0;   // at most
    double top1 = 0.0; // at least
};

// How far beyond the budget a measurement is, in logarithms; from 0 down it holds. `kl_high` and `top1_low`: the ends
// of the intervals on the wrong side.
double excess(const Budget & budget, double kl_high, double top1_low);

// The largest factor that holds, by steps that follow the excess until a factor that holds and one that doesn't are
// known, and between those by the line through both.
class FactorSearch {
  public:
    FactorSearch(double start, double highest) : first(start), most(highest) {}

    std::optional<double> next() const; // the factor to measure; none: done
    void tell(double factor, double excess_of_it);
    std::optional<double> best() const { return holds ? std::optional(holds->factor) : std::nullopt; }

  private:
    struct Point {
        double factor;
        double excess;
    };

    double first;
    double most;
    std::optional<Point> holds; // the largest that does
    std::optional<Point> fails; // the smallest that doesn't
    int told = 0;
};

} // namespace cascade::evaluate
