// Blocks stand in rows, one for each coordinate of the space: width x size, a vector being a column.
#include "subspace/block_solver.h"

#include <algorithm>
#include <cmath>
#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <numeric>
#include <random>

namespace cascade::subspace {

namespace {

using Small = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr int powers = 4; // in a round
constexpr int most_rounds = 10;
constexpr double enough = 1e-5;      // of the trace: a round that gains less is the last
constexpr double least_pivot = 3e-3; // of a Cholesky factor: below it rounding in floats would be seen

class Solver {
  public:
    Solver(const SecondMoments & moments, int64_t block_size, Team & some_team)
        : width(moments.width()), size(block_size), trace(moments.trace()), team(some_team),
          matrix(moments.whole(some_team)), block(values_of_a_block()), image(values_of_a_block()) {}

    void start() {
        std::mt19937_64 numbers(20260504); // any, but always the same
        for (float & value : block) {
            value = (static_cast<float>(numbers() >> 40U) / 8388608.0F) - 1.0F;
        }
        orthonormalise(2);
        apply(block, image);
    }

    // Each power is made orthonormal: in floats, two would lose small directions to a huge one.
    void improve() {
        for (int i = 0; i < powers; i++) {
            block.swap(image);
            orthonormalise(i + 1 < powers ? 1 : 2);
            apply(block, image);
        }
        rotate();
    }

    double held(int64_t wanted) const { return std::accumulate(ritz.begin(), ritz.begin() + wanted, 0.0); }
    double all() const { return trace; }

    Block result(int64_t wanted) const {
        Block found;
        found.values.assign(ritz.begin(), ritz.begin() + wanted);
        found.vectors.resize(static_cast<size_t>(wanted * width));
        for (int64_t i = 0; i < width; i++) {
            for (int64_t k = 0; k < wanted; k++) {
                found.vectors[static_cast<size_t>((k * width) + i)] = block[static_cast<size_t>((i * size) + k)];
            }
        }
        return found;
    }

  private:
    size_t values_of_a_block() const { return static_cast<size_t>(width * size); }
    MatrixView view(const std::vector<float> & of) const { return { of.data(), width, size, size }; }

    void apply(const std::vector<float> & from, std::vector<float> & to) const {
        multiply({ matrix.data(), width, width, width }, false, view(from), to.data(), team);
    }

    // of^T with, size x size.
    Small products(const std::vector<float> & of, const std::vector<float> & with) const {
        std::vector<float> result(static_cast<size_t>(size * size));
        multiply(view(of), true, view(with), result.data(), team);
        return Eigen::Map<Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(result.data(), size,
                                                                                                 size)
            .cast<double>();
    }

    // of = of small.
    void transform(std::vector<float> & of, const Small & small) {
        std::vector<float> factor(static_cast<size_t>(size * size));
        std::transform(small.data(), small.data() + (size * size), factor.begin(),
                       [](double value) { return static_cast<float>(value); });
        std::vector<float> result(of.size());
        multiply(view(of), false, { factor.data(), size, size, size }, result.data(), team);
        of.swap(result);
    }

    void to_unit_length() {
        std::vector<double> sums(static_cast<size_t>(size), 0.0);
        for (size_t i = 0; i < block.size(); i++) {
            sums[i % static_cast<size_t>(size)] += static_cast<double>(block[i]) * static_cast<double>(block[i]);
        }
        for (size_t i = 0; i < block.size(); i++) {
            const double norm = std::sqrt(sums[i % static_cast<size_t>(size)]);
            block[i] = norm > 0.0 ? static_cast<float>(static_cast<double>(block[i]) / norm) : 0.0F;
        }
    }

    // By the Gram matrix's Cholesky factor, which rounding forgives unless vectors are almost the same; then, and
    // always right, by the library's reflections. A second time makes it exact.
    void orthonormalise(int times) {
        to_unit_length();
        for (int i = 0; i < times; i++) {
            const Eigen::LLT<Eigen::MatrixXd> factor(products(block, block));
            if (factor.info() != Eigen::Success || factor.matrixLLT().diagonal().minCoeff() < least_pivot) {
                by_reflections();
                return;
            }
            const Eigen::MatrixXd inverse = factor.matrixU().solve(Eigen::MatrixXd::Identity(size, size));
            transform(block, inverse);
        }
    }

    void by_reflections() {
        Eigen::Map<Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>> mapped(block.data(), width,
                                                                                                 size);
        const Eigen::HouseholderQR<Eigen::MatrixXd> factors(mapped.cast<double>());
        const Eigen::MatrixXd q = factors.householderQ() * Eigen::MatrixXd::Identity(width, size);
        mapped = q.cast<float>();
    }

    // To the best vectors that the span has; the product with the matrix follows.
    void rotate() {
        Small small = products(block, image);
        small = (0.5 * (small + small.transpose())).eval();
        const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(small);
        const Small turn = solver.eigenvectors().rowwise().reverse();
        ritz.resize(static_cast<size_t>(size));
        for (int64_t k = 0; k < size; k++) {
            ritz[static_cast<size_t>(k)] = std::max(0.0, solver.eigenvalues()(size - 1 - k));
        }
        transform(block, turn);
        transform(image, turn);
    }

    int64_t width;
    int64_t size;
    double trace;
    Team & team;
    std::vector<float> matrix;
    std::vector<float> block;
    std::vector<float> image; // the matrix's product with the block
    std::vector<double> ritz; // values, largest first
};

} // namespace

Block leading_block(const SecondMoments & moments, int64_t size, int64_t wanted, Team & team) {
    Solver solver(moments, size, team);
    solver.start();
    double held = 0.0;
    for (int round = 0; round < most_rounds; round++) {
        solver.improve();
        const double gained = solver.held(wanted) - held;
        held += gained;
        if (gained < enough * solver.all()) {
            break;
        }
    }
    return solver.result(wanted);
}

} // namespace cascade::subspace
