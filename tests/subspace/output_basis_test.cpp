// Bases for the output against the best that any map of that rank can do, by the library in doubles.
#include "subspace/output_basis.h"

#include "subspace/made_inputs.h"

#include <Eigen/SVD>
#include <gtest/gtest.h>

namespace cascade::subspace {
namespace {

using test::inputs;
using test::moments_of;
using test::noise;
using test::Rows;

Eigen::MatrixXd matrix_of(const MatrixView & view) {
    Eigen::MatrixXd matrix(view.rows, view.columns);
    for (int64_t i = 0; i < view.rows; i++) {
        for (int64_t j = 0; j < view.columns; j++) {
            matrix(i, j) = static_cast<double>(view.row(i)[j]);
        }
    }
    return matrix;
}

// Inputs along few directions with noise, and maps that look at few directions of their own.
struct Made {
    Made(int64_t width, int64_t outputs, uint32_t seed)
        : team(2), rows(inputs(900, width, 40, 0.9F, 0.05F, seed)), maps(noise(outputs, width, seed + 7)),
          input_moments(moments_of(rows, team)), weight_moments(width) {
        for (int64_t i = 0; i < outputs; i++) {
            for (int64_t j = 0; j < width; j++) {
                maps.values[static_cast<size_t>((i * width) + j)] *= j % 3 == 0 ? 1.0F : 0.1F;
            }
        }
        weight_moments = moments_of(maps, team);
    }

    // |W x - W Z V^T x|^2 over |W x|^2, summed over the tokens.
    double lost(const Basis & basis, const MatrixView & guess) const {
        const Eigen::MatrixXd x = matrix_of(rows.view());
        const Eigen::MatrixXd w = matrix_of(maps.view());
        const Eigen::MatrixXd y = x * w.transpose();
        const Eigen::MatrixXd image = w * matrix_of(guess).transpose();
        const Eigen::MatrixXd error = y - (x * matrix_of(basis.view()).transpose() * image.transpose());
        return error.squaredNorm() / y.squaredNorm();
    }

    // What the best map of rank k loses.
    double least(int64_t k) const {
        const Eigen::MatrixXd y = matrix_of(rows.view()) * matrix_of(maps.view()).transpose();
        const Eigen::VectorXd values = Eigen::BDCSVD<Eigen::MatrixXd>(y).singularValues();
        return values.tail(values.size() - k).squaredNorm() / values.squaredNorm();
    }

    Team team;
    Rows rows;
    Rows maps;
    SecondMoments input_moments;
    SecondMoments weight_moments;
};

BasisOptions with(int64_t k) {
    BasisOptions options;
    options.vectors = k;
    options.values = k;
    return options;
}

TEST(OutputBasis, LosesAsLittleAsAnyMapOfItsRank) {
    for (const int64_t width : { 96, 700 }) { // decomposed whole and by blocks
        Made made(width, 180, 3);
        for (const int64_t k : { 8, 24 }) {
            const Basis basis = output_basis(made.input_moments, made.weight_moments, with(k), made.team);
            ASSERT_EQ(basis.count(), k);
            const Eigen::MatrixXd vectors = matrix_of(basis.view());
            EXPECT_LT((vectors * vectors.transpose() - Eigen::MatrixXd::Identity(k, k)).cwiseAbs().maxCoeff(), 1e-5);
            const std::vector<float> guess = best_guess(basis, made.input_moments, made.team);
            const MatrixView guess_view = { guess.data(), k, width, width };
            const double lost = made.lost(basis, guess_view);
            EXPECT_NEAR(lost, made.least(k), 0.01 * made.least(k) + 1e-5) << width << ", " << k;
            EXPECT_NEAR(1.0 - basis.energy(k), made.least(k), 0.01 * made.least(k) + 1e-4);
            const OutputLoss loss = output_loss(basis, guess_view, made.input_moments, made.weight_moments, made.team);
            EXPECT_NEAR(loss.share, lost, 0.01 * lost + 1e-4);
        }
    }
}

TEST(OutputBasis, TheInputsOwnBasisLosesMore) {
    Made made(96, 180, 5);
    const Basis own = leading_basis(made.input_moments, with(16), made.team);
    const OutputLoss loss = output_loss(own, own.view(), made.input_moments, made.weight_moments, made.team);
    const double lost = made.lost(own, own.view());
    EXPECT_NEAR(loss.share, lost, 0.01 * lost + 1e-4);
    EXPECT_GT(lost, 1.05 * made.least(16));
    EXPECT_NEAR(loss.gain, std::sqrt(loss.share / (1.0 - own.energy(16))), 0.02);
}

TEST(OutputBasis, TheBestGuessFromLeadingDirectionsIsTheirOwn) {
    Made made(96, 40, 9);
    const Basis own = leading_basis(made.input_moments, with(16), made.team);
    const std::vector<float> guess = best_guess(own, made.input_moments, made.team);
    for (size_t i = 0; i < guess.size(); i++) {
        ASSERT_NEAR(guess[i], own.vectors[i], 1e-3) << i;
    }
}

TEST(OutputBasis, TakesInputsThatMissDirections) {
    Team team(1);
    Rows rows = inputs(20, 64, 6, 0.8F, 0.0F, 2); // fewer tokens than values
    const Rows maps = noise(32, 64, 4);
    const SecondMoments of_rows = moments_of(rows, team);
    const SecondMoments of_maps = moments_of(maps, team);
    const Basis basis = output_basis(of_rows, of_maps, with(6), team);
    const std::vector<float> guess = best_guess(basis, of_rows, team);
    EXPECT_LT(output_loss(basis, { guess.data(), 6, 64, 64 }, of_rows, of_maps, team).share, 1e-4);
}

TEST(SecondMoments, OfAMatrixThatWasMadeOtherwise) {
    Team team(1);
    const SecondMoments made = moments_of(inputs(50, 200, 10, 0.9F, 0.1F, 1), team);
    const std::vector<float> whole = made.whole(team);
    const SecondMoments copy = SecondMoments::of({ whole.data(), 200, 200, 200 });
    EXPECT_TRUE(std::equal(whole.begin(), whole.end(), copy.whole(team).begin()));
}

} // namespace
} // namespace cascade::subspace
