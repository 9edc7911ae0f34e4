// A basis for what maps make of their input, instead of for the input itself: directions that the maps don't look at
// are not worth keeping, however much of the input lies along them.
//
// Among all maps of rank k, the one with the least sum of |W x - y|^2 over a text takes the leading directions of the
// output. It reads V^T x, where V spans the rows of those directions' U^T W, and its image is W Z: Z is the best guess
// of x from V^T x. For leading directions of the inputs Z is V itself, and the image is the paper's W V.
#pragma once

#include "subspace/basis.h"

namespace cascade::subspace {

// `weights`: second moments of the maps' rows, W^T W. The values are the output's energies, the vectors orthonormal.
// Throws as leading_basis does.
Basis output_basis(const SecondMoments & inputs, const SecondMoments & weights, const BasisOptions & options,
                   Team & team);

// Z: one row for each vector of the basis.
std::vector<float> best_guess(const Basis & basis, const SecondMoments & inputs, Team & team);

struct OutputLoss {
    double share = 0.0; // of the output's squared length over the text: what the image doesn't give
    // How the output's relative error follows from the input's: sqrt of the lost share over sqrt of the share of the
    // input that lies outside the basis.
    double gain = 1.0;
};
// `guess`: Z, or the basis' own vectors.
OutputLoss output_loss(const Basis & basis, const MatrixView & guess, const SecondMoments & inputs,
                       const SecondMoments & weights, Team & team);

} // namespace cascade::subspace
