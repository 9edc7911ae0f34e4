#include "subspace/basis.h"

#include "subspace/block_solver.h"

#include <algorithm>
#include <cmath>
#include <Eigen/Eigenvalues>
#include <numeric>
#include <stdexcept>

namespace cascade::subspace {

namespace {

constexpr int64_t spare = 32; // vectors of a block beyond those wanted: the last ones converge slowly

Basis decomposed_whole(const SecondMoments & moments) {
    const int64_t width = moments.width();
    Eigen::MatrixXd matrix(width, width);
    for (int64_t j = 0; j < width; j++) {
        for (int64_t i = j; i < width; i++) {
            matrix(i, j) = static_cast<double>(moments.at(i, j));
        }
    }
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(matrix); // reads the lower triangle
    Basis basis;
    basis.width = width;
    basis.vectors.resize(static_cast<size_t>(width * width));
    basis.values.resize(static_cast<size_t>(width));
    for (int64_t k = 0; k < width; k++) {
        const int64_t from = width - 1 - k; // the library's smallest come first
        basis.values[static_cast<size_t>(k)] = std::max(0.0, solver.eigenvalues()(from));
        for (int64_t i = 0; i < width; i++) {
            basis.vectors[static_cast<size_t>((k * width) + i)] = static_cast<float>(solver.eigenvectors()(i, from));
        }
    }
    return basis;
}

// An eigenvector's sign is anybody's choice.
void fix_signs(Basis & basis) {
    for (int64_t k = 0; k < basis.count(); k++) {
        const auto row = basis.vectors.begin() + (k * basis.width);
        const auto largest =
            std::max_element(row, row + basis.width, [](float a, float b) { return std::fabs(a) < std::fabs(b); });
        if (*largest < 0.0F) {
            std::transform(row, row + basis.width, row, [](float value) { return -value; });
        }
    }
}

int64_t block_size(int64_t width, int64_t wanted, const BasisOptions & options) {
    return std::max(wanted, std::min(options.values, width / 2)) + spare;
}

bool is_solved_whole(int64_t width, int64_t block, const BasisOptions & options) {
    return width <= options.whole_up_to || block > width / 2 + spare;
}

int64_t in_blocks(int64_t count, int64_t width, const BasisOptions & options) {
    const int64_t most = width / options.multiple_of;
    const int64_t blocks =
        options.energy > 0.0 ? (count + options.multiple_of - 1) / options.multiple_of : count / options.multiple_of;
    return std::clamp<int64_t>(blocks, 1, std::max<int64_t>(most, 1)) * options.multiple_of;
}

Basis solved(const SecondMoments & moments, int64_t wanted, const BasisOptions & options, Team & team) {
    const int64_t width = moments.width();
    const int64_t block = block_size(width, wanted, options);
    if (is_solved_whole(width, block, options)) {
        return decomposed_whole(moments);
    }
    Basis basis;
    basis.width = width;
    basis.by_blocks = true;
    Block found = leading_block(moments, block, block - spare, team);
    basis.values = std::move(found.values);
    basis.vectors = std::move(found.vectors);
    return basis;
}

BasisOptions exactly(int64_t vectors, BasisOptions options) {
    options.vectors = vectors;
    options.energy = 0.0;
    return options;
}

double squared_norm(const float * row, int64_t size) {
    return std::accumulate(row, row + size, 0.0, [](double sum, float value) {
        return sum + (static_cast<double>(value) * static_cast<double>(value));
    });
}

} // namespace

double Basis::energy(int64_t k) const {
    const auto first = values.begin();
    const double held = std::accumulate(first, first + std::min<int64_t>(k, static_cast<int64_t>(values.size())), 0.0);
    return trace > 0.0 ? std::clamp(held / trace, 0.0, 1.0) : 1.0;
}

int64_t Basis::count_for(double wanted_energy) const {
    double held = 0.0;
    for (size_t k = 0; k < values.size(); k++) {
        held += values[k];
        if (held >= wanted_energy * trace) {
            return static_cast<int64_t>(k) + 1;
        }
    }
    return -1;
}

void Basis::keep(int64_t kept) {
    vectors.resize(static_cast<size_t>(std::min(kept, count()) * width));
    vectors.shrink_to_fit();
}

size_t basis_bytes(int64_t width, const BasisOptions & options) {
    const int64_t wanted = options.energy > 0.0 ? width / 2 : std::min(options.vectors, width);
    const int64_t block = block_size(width, wanted, options);
    const auto side = static_cast<size_t>(width);
    return is_solved_whole(width, block, options) ? side * side * (3 * sizeof(double) + sizeof(float))
                                                  : side * sizeof(float) * (side + (4 * static_cast<size_t>(block)));
}

Basis leading_basis(const SecondMoments & moments, const BasisOptions & options, Team & team) {
    const double trace = moments.trace();
    if (!std::isfinite(trace)) {
        throw std::runtime_error("the model's activations are not finite on this text");
    }
    const int64_t width = moments.width();
    int64_t wanted = options.energy > 0.0 ? std::min(options.values, width / 2)
                                          : in_blocks(std::min(options.vectors, width), width, options);
    for (;;) {
        Basis basis = solved(moments, wanted, options, team);
        basis.trace = trace;
        if (options.energy > 0.0) {
            const int64_t enough = basis.count_for(options.energy);
            if (enough < 0 && wanted < width / 2) {
                wanted = std::min(2 * wanted, width / 2);
                continue;
            }
            wanted = in_blocks(enough < 0 ? width / 2 : std::min(enough, width / 2), width, options);
            if (wanted > basis.count()) { // the last block's end
                return leading_basis(moments, exactly(wanted, options), team);
            }
        }
        basis.keep(std::max<int64_t>(wanted, 1));
        fix_signs(basis);
        return basis;
    }
}

Inheritance inherit(const Basis & from, const SecondMoments & other, const Basis & other_basis, double tolerance,
                    Team & team) {
    const int64_t width = from.width;
    const int64_t count = from.count();
    Inheritance result;
    const std::vector<float> matrix = other.whole(team);
    std::vector<float> image(static_cast<size_t>(count * width)); // V^T M, one row for each vector
    multiply(from.view(), false, { matrix.data(), width, width, width }, image.data(), team);
    double held = 0.0;
    for (int64_t i = 0; i < count * width; i++) {
        held += static_cast<double>(image[static_cast<size_t>(i)]) *
                static_cast<double>(from.vectors[static_cast<size_t>(i)]);
    }
    const double trace = other.trace();
    result.energy = trace > 0.0 ? std::clamp(held / trace, 0.0, 1.0) : 1.0;
    const std::vector<float> outside = residuals(from.view(), other_basis.view(), team);
    result.updates = std::count_if(outside.begin(), outside.end(),
                                   [&](float residual) { return static_cast<double>(residual) > tolerance; });
    return result;
}

std::vector<float> residuals(const MatrixView & basis, const MatrixView & rows, Team & team) {
    std::vector<float> turned(static_cast<size_t>(basis.rows * basis.columns)); // one column for each vector
    for (int64_t k = 0; k < basis.rows; k++) {
        for (int64_t i = 0; i < basis.columns; i++) {
            turned[static_cast<size_t>((i * basis.rows) + k)] = basis.row(k)[i];
        }
    }
    std::vector<float> coordinates(static_cast<size_t>(rows.rows * basis.rows));
    multiply(rows, false, { turned.data(), basis.columns, basis.rows, basis.rows }, coordinates.data(), team);
    std::vector<float> result(static_cast<size_t>(rows.rows));
    for (int64_t t = 0; t < rows.rows; t++) {
        const double all = squared_norm(rows.row(t), rows.columns);
        const double held = squared_norm(coordinates.data() + (t * basis.rows), basis.rows);
        result[static_cast<size_t>(t)] =
            all > 0.0 ? static_cast<float>(std::sqrt(std::max(0.0, 1.0 - (held / all)))) : 0.0F;
    }
    return result;
}

} // namespace cascade::subspace
