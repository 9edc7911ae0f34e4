#include "attend/compressed_keys.h"

#include <algorithm>
#include <cmath>
#include <Eigen/Eigenvalues>

namespace cascade::attend {

namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr int unrounded = 16;

// Symmetric rounding with one scale for each row.
void round_rows(Matrix & rows, int bits) {
    const auto levels = static_cast<float>((1 << (bits - 1)) - 1);
    for (auto row : rows.rowwise()) {
        const float step = row.cwiseAbs().maxCoeff() / levels;
        if (step > 0.0F) {
            row = row.unaryExpr([step](float value) { return std::nearbyint(value / step) * step; });
        }
    }
}

// Eigenvectors of the keys' covariance, those with the largest values first, as columns.
Matrix leading_basis(const Matrix & centred, int64_t coordinates) {
    const Eigen::MatrixXd covariance = (centred.transpose() * centred).cast<double>();
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(covariance);
    return solver.eigenvectors().rowwise().reverse().leftCols(coordinates).cast<float>();
}

} // namespace

double Compression::bits_for_key(int64_t size) const {
    const auto values = static_cast<double>(coordinates > 0 ? std::min(coordinates, size) : size);
    return (values * bits) + (bits < unrounded ? 16.0 : 0.0);
}

std::vector<float> compressed_keys(const float * keys, int64_t count, int64_t size, const Compression & compression) {
    std::vector<float> result(keys, keys + (count * size));
    const bool rotated = compression.coordinates > 0 && compression.coordinates < size;
    if (count == 0 || (!rotated && compression.bits >= unrounded)) {
        return result;
    }
    Eigen::Map<Matrix> out(result.data(), count, size);
    const Eigen::RowVectorXf mean = out.cast<double>().colwise().mean().cast<float>();
    Matrix rest = out.rowwise() - mean;
    const Matrix basis = rotated ? leading_basis(rest, compression.coordinates) : Matrix();
    if (rotated) {
        rest = (rest * basis).eval();
    }
    if (compression.bits < unrounded) {
        round_rows(rest, compression.bits);
    }
    if (rotated) {
        rest = (rest * basis.transpose()).eval();
    }
    out = rest.rowwise() + mean;
    return result;
}

} // namespace cascade::attend
