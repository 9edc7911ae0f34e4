// What an epsilon becomes with a sidecar's gain and rough copies.
#include "backend/gate_bounds.h"

#include <gtest/gtest.h>

namespace cascade::backend {
namespace {

sidecar::SubspaceFigures figures_of(float gain, float rough_error) {
    sidecar::SubspaceFigures figures;
    figures.held_out = { 0.0F, 0.1F, 0.2F, 0.3F, 0.4F, 0.5F, 0.6F, 0.7F, 0.8F };
    figures.gain = gain;
    figures.rough_error = rough_error;
    return figures;
}

TEST(GateBounds, ThePapersGateIsEpsilonItself) {
    const subspace::GateBounds bounds = gate_bounds(figures_of(1.0F, 0.0F), 0.05F);
    EXPECT_FLOAT_EQ(bounds.skip, 0.05F);
    EXPECT_EQ(bounds.rough, 0.0F) << "no rough copy";
}

TEST(GateBounds, AGainAndARoughCopyWidenThem) {
    const subspace::GateBounds bounds = gate_bounds(figures_of(0.5F, 0.25F), 0.05F);
    EXPECT_FLOAT_EQ(bounds.skip, 0.1F);
    EXPECT_FLOAT_EQ(bounds.rough, 0.4F);
    EXPECT_EQ(gate_bounds(figures_of(0.5F, 0.25F), 0.0F).rough, 0.0F) << "epsilon 0 is exact";
}

TEST(GateBounds, HeldOutTokensAreCountedAtThisEpsilon) {
    const GatedShares shares = held_out_shares(figures_of(0.5F, 0.25F), 0.05F);
    EXPECT_NEAR(shares.passed, 1.0 / 8.0, 1e-6);
    EXPECT_NEAR(shares.rough, 3.0 / 8.0, 1e-6);
    EXPECT_NEAR(held_out_shares(figures_of(1.0F, 0.0F), 0.4F).passed, 0.5, 1e-6);
}

} // namespace
} // namespace cascade::backend
