// The directions that hold most of a linear map's inputs: leading eigenvectors of their second moments.
//
// Narrow inputs are decomposed whole, by the library. For wide ones that takes minutes, so a block of vectors is
// improved instead: multiplied with the matrix, made orthonormal, and rotated to the best that its span has (Rayleigh
// and Ritz), until the energy stands. Both are deterministic: the block starts from fixed numbers. Tried instead of
// powers: a Chebyshev filter, a third of the products, but in floats what rounding leaves of a huge direction in the
// other vectors outgrows them, and models have such directions.
#pragma once

#include "cascade/team.h"
#include "subspace/second_moments.h"

#include <cstdint>
#include <span>
#include <vector>

namespace cascade::subspace {

struct Basis {
    int64_t width = 0;
    double trace = 0.0;         // of the moments: all the energy
    std::vector<double> values; // leading eigenvalues, largest first; at least as many as vectors
    std::vector<float> vectors; // one row of `width` for each, orthonormal, its largest entry positive
    bool by_blocks = false;     // not decomposed whole

    int64_t count() const { return width > 0 ? static_cast<int64_t>(vectors.size()) / width : 0; }
    MatrixView view() const { return { vectors.data(), count(), width, width }; }

    // Share of the trace that the first k directions hold; k no larger than values.size().
    double energy(int64_t k) const;
    // The least k with so much of it; -1: more than are known.
    int64_t count_for(double wanted_energy) const;

    void keep(int64_t count); // the first vectors; values stay
};

struct BasisOptions {
    int64_t vectors = 256;
    double energy = 0.0;       // above 0: as many vectors as hold it instead, half the width at most
    int64_t values = 512;      // known at least, where the width allows
    int64_t whole_up_to = 640; // widths decomposed by the library at once
    int64_t multiple_of = 1;   // of vectors: for images in blocks; rounded up for an energy, down otherwise
};

// Memory that leading_basis takes beside the moments.
size_t basis_bytes(int64_t width, const BasisOptions & options);

// Throws std::bad_alloc, and std::runtime_error where the moments aren't finite.
Basis leading_basis(const SecondMoments & moments, const BasisOptions & options, Team & team);

// How a basis does for another layer's inputs.
struct Inheritance {
    double energy = 0.0; // share of the other's trace within the span
    int64_t updates = 0; // of the other's own vectors, those further than the tolerance from the span
};
Inheritance inherit(const Basis & from, const SecondMoments & other, const Basis & other_basis, double tolerance,
                    Team & team);

// ||r|| / ||x|| of each row, r being what is outside the span; 0 for rows of zeros.
std::vector<float> residuals(const MatrixView & basis, const MatrixView & rows, Team & team);

} // namespace cascade::subspace
