// X^T X over tokens as they come: what a calibration keeps of a linear map's inputs.
//
// The matrix is symmetric, so only its lower triangle is kept: in strips of rows, each as wide as its last row reaches.
// Tokens are taken in runs; the same runs in the same order give the same bits, whatever happened between them.
#pragma once

#include "subspace/products.h"

#include <cstdint>
#include <span>
#include <vector>

namespace cascade::subspace {

class SecondMoments {
  public:
    explicit SecondMoments(int64_t of_width);
    static SecondMoments of(const MatrixView & symmetric); // a matrix that was made in another way

    int64_t width() const { return size; }
    int64_t tokens() const { return count; }

    // One row of `width` for each token. `scratch` may be shared by moments that are added to in turn.
    void add(const MatrixView & rows, PackedRun & scratch, Team & team);

    double trace() const;
    float at(int64_t i, int64_t j) const;

    // The whole matrix, width x width.
    std::vector<float> whole(Team & team) const;

    // What a later run goes on with; `restore` is told as many values as `raw` has.
    std::span<const float> raw() const { return values; }
    void restore(std::span<const float> raw_values, int64_t of_tokens);

    static size_t bytes(int64_t width);

  private:
    int64_t size;
    int64_t count = 0;
    std::vector<float> values;
};

} // namespace cascade::subspace
