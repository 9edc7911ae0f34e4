#include "subspace/output_basis.h"

#include <algorithm>
#include <cmath>
#include <Eigen/Cholesky>
#include <Eigen/QR>
#include <stdexcept>

namespace cascade::subspace {

namespace {

using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Eigen::MatrixXd in_doubles(const MatrixView & view) {
    return Eigen::Map<const Rows>(view.data, view.rows, view.columns).cast<double>();
}

MatrixView square(const std::vector<float> & values, int64_t width) { return { values.data(), width, width, width }; }

std::vector<float> product(const MatrixView & left, bool transposed, const MatrixView & right, Team & team) {
    std::vector<float> out(static_cast<size_t>((transposed ? left.columns : left.rows) * right.columns));
    multiply(left, transposed, right, out.data(), team);
    return out;
}

double dot(const std::vector<float> & one, const float * other) {
    double sum = 0.0;
    for (size_t i = 0; i < one.size(); i++) {
        sum += static_cast<double>(one[i]) * static_cast<double>(other[i]);
    }
    return sum;
}

// Lower triangle: L with L L^T = the moments and `ridge` on their diagonal; false: they aren't positive.
bool take_root(const SecondMoments & moments, double ridge, Eigen::MatrixXd & matrix) {
    for (int64_t j = 0; j < moments.width(); j++) {
        for (int64_t i = j; i < moments.width(); i++) {
            matrix(i, j) = static_cast<double>(moments.at(i, j)) + (i == j ? ridge : 0.0);
        }
    }
    return Eigen::LLT<Eigen::Ref<Eigen::MatrixXd>>(matrix).info() == Eigen::Success; // in place
}

// Sums in floats leave moments a little negative along directions that no token has: as much noise as makes them
// positive is added.
std::vector<float> root_of(const SecondMoments & moments) {
    const int64_t width = moments.width();
    Eigen::MatrixXd matrix(width, width);
    double ridge = std::max(1e-8 * moments.trace(), 1e-30);
    constexpr double most = 1e-3;
    while (!take_root(moments, ridge, matrix)) {
        ridge *= 4.0;
        if (ridge > most * moments.trace()) {
            throw std::runtime_error("the inputs' moments are not positive: calibrate on more tokens");
        }
    }
    std::vector<float> root(static_cast<size_t>(width * width), 0.0F);
    for (int64_t i = 0; i < width; i++) {
        for (int64_t j = 0; j <= i; j++) {
            root[static_cast<size_t>((i * width) + j)] = static_cast<float>(matrix(i, j));
        }
    }
    return root;
}

std::vector<float> orthonormal_rows(const std::vector<float> & rows, int64_t width) {
    const int64_t count = static_cast<int64_t>(rows.size()) / width;
    const Eigen::HouseholderQR<Eigen::MatrixXd> factors(in_doubles({ rows.data(), count, width, width }).transpose());
    const Eigen::MatrixXd columns = factors.householderQ() * Eigen::MatrixXd::Identity(width, count);
    std::vector<float> result(rows.size());
    Eigen::Map<Rows>(result.data(), count, width) = columns.transpose().cast<float>();
    return result;
}

// V^T C V, from C V.
Eigen::MatrixXd inner(const std::vector<float> & mapped, const MatrixView & vectors) {
    return in_doubles({ mapped.data(), vectors.rows, vectors.columns, vectors.columns }) *
           in_doubles(vectors).transpose();
}

} // namespace

Basis output_basis(const SecondMoments & inputs, const SecondMoments & weights, const BasisOptions & options,
                   Team & team) {
    const int64_t width = inputs.width();
    if (!std::isfinite(inputs.trace()) || !std::isfinite(weights.trace())) {
        throw std::runtime_error("the model's activations are not finite on this text");
    }
    const std::vector<float> root = root_of(inputs);
    const std::vector<float> matrix = weights.whole(team);
    const std::vector<float> seen = product(square(root, width), true, square(matrix, width), team); // L^T W^T W
    const std::vector<float> outputs = product(square(seen, width), false, square(root, width), team);
    Basis basis = leading_basis(SecondMoments::of(square(outputs, width)), options, team);
    basis.vectors = orthonormal_rows(product(basis.view(), false, square(seen, width), team), width);
    return basis;
}

std::vector<float> best_guess(const Basis & basis, const SecondMoments & inputs, Team & team) {
    const std::vector<float> moments = inputs.whole(team);
    const std::vector<float> mapped = product(basis.view(), false, square(moments, basis.width), team);
    const MatrixView mapped_rows = { mapped.data(), basis.count(), basis.width, basis.width };
    const Eigen::MatrixXd rows = inner(mapped, basis.view()).ldlt().solve(in_doubles(mapped_rows));
    std::vector<float> guess(mapped.size());
    Eigen::Map<Rows>(guess.data(), basis.count(), basis.width) = rows.cast<float>();
    return guess;
}

OutputLoss output_loss(const Basis & basis, const MatrixView & guess, const SecondMoments & inputs,
                       const SecondMoments & weights, Team & team) {
    const int64_t width = basis.width;
    const std::vector<float> moments = inputs.whole(team);
    const std::vector<float> matrix = weights.whole(team);
    const double all = dot(moments, matrix.data());
    const std::vector<float> mapped = product(basis.view(), false, square(moments, width), team);
    const std::vector<float> seen = product(guess, false, square(matrix, width), team);
    const Eigen::MatrixXd inside = inner(mapped, basis.view());
    const double given = inner(seen, guess).cwiseProduct(inside).sum();
    const double left = all - (2.0 * dot(mapped, seen.data())) + given;
    const double outside = 1.0 - (inside.trace() / std::max(inputs.trace(), 1e-30));
    constexpr double rounding = 1e-6;
    OutputLoss loss;
    loss.share = all > 0.0 ? std::clamp(left / all, 0.0, 1.0) : 0.0;
    loss.gain = outside > rounding && loss.share > rounding ? std::sqrt(loss.share / outside) : 1.0;
    return loss;
}

} // namespace cascade::subspace
