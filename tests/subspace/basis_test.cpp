// Bases against the library's decomposition in doubles, narrow and wide, with spectra that fall fast and slowly.
#include "subspace/basis.h"
#include "subspace/made_inputs.h"

#include <Eigen/Eigenvalues>
#include <gtest/gtest.h>

namespace cascade::subspace {
namespace {

using test::inputs;
using test::moments_of;
using test::noise;
using test::Rows;

Eigen::VectorXd plain_values(const Rows & rows) { // largest first
    Eigen::MatrixXd x(rows.count, rows.width);
    for (int64_t t = 0; t < rows.count; t++) {
        for (int64_t i = 0; i < rows.width; i++) {
            x(t, i) = static_cast<double>(rows.view().row(t)[i]);
        }
    }
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(x.transpose() * x, Eigen::EigenvaluesOnly);
    return solver.eigenvalues().reverse();
}

void expect_orthonormal(const Basis & basis) {
    for (int64_t a = 0; a < basis.count(); a++) {
        for (int64_t b = 0; b <= a; b++) {
            double sum = 0.0;
            for (int64_t i = 0; i < basis.width; i++) {
                sum += static_cast<double>(basis.view().row(a)[i]) * static_cast<double>(basis.view().row(b)[i]);
            }
            ASSERT_NEAR(sum, a == b ? 1.0 : 0.0, 2e-5) << a << ", " << b;
        }
    }
}

// What the first k vectors really hold of the rows' energy.
double held_by(const Basis & basis, const Rows & rows) {
    double held = 0.0;
    double all = 0.0;
    for (int64_t t = 0; t < rows.count; t++) {
        for (int64_t k = 0; k < basis.count(); k++) {
            double sum = 0.0;
            for (int64_t i = 0; i < rows.width; i++) {
                sum += static_cast<double>(rows.view().row(t)[i]) * static_cast<double>(basis.view().row(k)[i]);
            }
            held += sum * sum;
        }
        for (int64_t i = 0; i < rows.width; i++) {
            all += static_cast<double>(rows.view().row(t)[i]) * static_cast<double>(rows.view().row(t)[i]);
        }
    }
    return held / all;
}

struct Case {
    const char * what;
    int64_t width;
    int64_t wanted;
    int64_t directions;
    float decay;
    float noise;
};

class Spectra : public testing::TestWithParam<Case> {};

TEST_P(Spectra, HoldAllThatSoManyDirectionsCan) {
    const Case & of = GetParam();
    Team team(2);
    const Rows rows = inputs(600, of.width, of.directions, of.decay, of.noise, 11);
    BasisOptions options;
    options.vectors = of.wanted;
    options.values = of.wanted;
    options.whole_up_to = 64;
    const Basis basis = leading_basis(moments_of(rows, team), options, team);
    ASSERT_EQ(basis.count(), of.wanted);
    EXPECT_EQ(basis.by_blocks, of.width > 64 && of.wanted <= of.width / 2);
    expect_orthonormal(basis);
    const Eigen::VectorXd values = plain_values(rows);
    const double best = values.head(of.wanted).sum() / values.sum();
    EXPECT_NEAR(held_by(basis, rows), best, 5e-5) << of.what;
    EXPECT_NEAR(basis.energy(of.wanted), best, 5e-5) << of.what;
    EXPECT_NEAR(basis.values.front(), values(0), 1e-4 * values(0));
    for (size_t k = 1; k < basis.values.size(); k++) {
        EXPECT_LE(basis.values[k], basis.values[k - 1]);
    }
}

INSTANTIATE_TEST_SUITE_P(
    All, Spectra,
    testing::Values(Case{ "narrow", 40, 10, 12, 0.8F, 0.1F }, Case{ "all of it", 50, 50, 20, 0.8F, 0.1F },
                    Case{ "falls fast", 300, 32, 64, 0.7F, 0.01F }, Case{ "falls slowly", 300, 48, 200, 0.99F, 0.3F },
                    Case{ "nothing but noise", 250, 40, 0, 1.0F, 1.0F },
                    Case{ "exactly low rank", 260, 40, 12, 0.9F, 0.0F },
                    Case{ "one huge direction", 300, 40, 80, 0.05F, 0.02F }, Case{ "wide", 700, 96, 150, 0.97F, 0.1F },
                    Case{ "more than half, whole", 200, 120, 100, 0.95F, 0.1F }));

TEST(Basis, IsTheSameEachTimeAndWithAnyTeam) {
    const Rows rows = inputs(500, 320, 100, 0.95F, 0.1F, 5);
    BasisOptions options;
    options.vectors = 24;
    options.values = 24;
    options.whole_up_to = 64;
    Team one(1);
    Team three(3);
    const Basis a = leading_basis(moments_of(rows, one), options, one);
    const Basis b = leading_basis(moments_of(rows, three), options, three);
    EXPECT_EQ(a.vectors, b.vectors);
    EXPECT_EQ(a.values, b.values);
}

TEST(Basis, HasAsManyVectorsAsAnEnergyNeeds) {
    Team team(2);
    const Rows rows = inputs(500, 300, 100, 0.93F, 0.05F, 6);
    const Eigen::VectorXd values = plain_values(rows);
    for (const int64_t whole_up_to : { 64, 640 }) {
        for (const double energy : { 0.3, 0.8, 0.95 }) {
            BasisOptions options;
            options.energy = energy;
            options.values = 16; // so that it must grow
            options.whole_up_to = whole_up_to;
            const Basis basis = leading_basis(moments_of(rows, team), options, team);
            int64_t needed = 0;
            for (double held = 0.0; held < energy * values.sum(); needed++) {
                held += values(needed);
            }
            EXPECT_EQ(basis.count(), needed) << energy;
        }
    }
    BasisOptions too_much;
    too_much.energy = 0.9;
    const Basis half = leading_basis(moments_of(noise(2000, 100, 8), team), too_much, team);
    EXPECT_EQ(half.count(), 50);
}

TEST(Basis, OfNothingAndOfWhatIsNoNumber) {
    Team team(1);
    const Rows zeros{ 10, 40, std::vector<float>(400, 0.0F) };
    BasisOptions options;
    options.vectors = 4;
    EXPECT_EQ(leading_basis(moments_of(zeros, team), options, team).energy(4), 1.0);
    const Rows wide{ 10, 200, std::vector<float>(2000, 0.0F) };
    options.whole_up_to = 16;
    EXPECT_EQ(leading_basis(moments_of(wide, team), options, team).count(), 4);
    Rows bad = zeros;
    bad.values[7] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_THROW(leading_basis(moments_of(bad, team), options, team), std::runtime_error);
}

TEST(Residuals, AreWhatIsOutsideTheSpan) {
    Team team(2);
    const Rows rows = inputs(300, 120, 30, 0.9F, 0.1F, 9);
    BasisOptions options;
    options.vectors = 10;
    const Basis basis = leading_basis(moments_of(rows, team), options, team);
    const std::vector<float> found = residuals(basis.view(), rows.view(), team);
    for (int64_t t = 0; t < rows.count; t++) {
        std::vector<double> rest(rows.view().row(t), rows.view().row(t) + rows.width);
        double all = 0.0;
        double outside = 0.0;
        for (int64_t k = 0; k < basis.count(); k++) {
            double amount = 0.0;
            for (int64_t i = 0; i < rows.width; i++) {
                amount += static_cast<double>(rows.view().row(t)[i]) * static_cast<double>(basis.view().row(k)[i]);
            }
            for (int64_t i = 0; i < rows.width; i++) {
                rest[static_cast<size_t>(i)] -= amount * static_cast<double>(basis.view().row(k)[i]);
            }
        }
        for (int64_t i = 0; i < rows.width; i++) {
            all += static_cast<double>(rows.view().row(t)[i]) * static_cast<double>(rows.view().row(t)[i]);
            outside += rest[static_cast<size_t>(i)] * rest[static_cast<size_t>(i)];
        }
        ASSERT_NEAR(found[static_cast<size_t>(t)], std::sqrt(outside / all), 1e-3);
    }
}

TEST(Inheritance, OfTheSameInputsIsWholeAndOfOthersIsNot) {
    Team team(2);
    const Rows rows = inputs(400, 150, 20, 0.9F, 0.0F, 10);
    BasisOptions options;
    options.vectors = 20;
    const SecondMoments moments = moments_of(rows, team);
    const Basis basis = leading_basis(moments, options, team);
    const Inheritance same = inherit(basis, moments, basis, 0.05, team);
    EXPECT_NEAR(same.energy, 1.0, 1e-5);
    EXPECT_EQ(same.updates, 0);
    const Rows others = noise(400, 150, 77);
    const SecondMoments other_moments = moments_of(others, team);
    const Inheritance other = inherit(basis, other_moments, leading_basis(other_moments, options, team), 0.05, team);
    EXPECT_NEAR(other.energy, 20.0 / 150.0, 0.03);
    EXPECT_EQ(other.updates, 20);
}

} // namespace
} // namespace cascade::subspace
