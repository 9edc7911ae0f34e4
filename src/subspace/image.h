// W V: what a linear map does to the directions of a basis, so that y = (W V) g where x = V g.
#pragma once

#include "subspace/products.h"

#include <vector>

namespace cascade::subspace {

// For rows of W, as they come: made once for a basis, whose vectors are its rows.
class ImageOf {
  public:
    explicit ImageOf(const MatrixView & basis);

    int64_t count() const { return vectors; }

    // One row of `count` values for each of W's rows.
    void rows(const MatrixView & weights, float * out, Team & team) const;

  private:
    int64_t width;
    int64_t vectors;
    std::vector<float> columns; // the basis, a vector in each column
};

} // namespace cascade::subspace
