// The paired block bootstrap of summary.h: sums of blocks, drawn again and again, the same draws for all methods.
#pragma once

#include "evaluate/summary.h"

#include <cstdint>
#include <vector>

namespace cascade::evaluate {

// What is summed of a block's tokens.
struct Sums {
    double kl = 0.0;
    double same_top = 0.0;
    double nll = 0.0;
};

using BlockSums = std::vector<Sums>; // one method in all blocks

struct Blocks {
    std::vector<double> tokens;     // of each block
    std::vector<double> dense_nll;  // of each block
    std::vector<BlockSums> methods; // each as many as there are blocks
};

Blocks blocks_of(const Evaluation & evaluation);

// Means over the tokens of each draw.
struct Draws {
    std::vector<double> dense_nll;
    std::vector<std::vector<Sums>> methods;
};

// Empty where there are fewer than two blocks: nothing can be said of how sure a figure is.
Draws draw(const Blocks & blocks);

// 95 % percentiles; not measured where there are no values.
Interval percentiles(std::vector<double> values);

} // namespace cascade::evaluate
