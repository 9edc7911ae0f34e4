// Which inputs of linear maps are worth taking through their subspace, by bytes.
#include "plan/linear_plan.h"

#include <gtest/gtest.h>

namespace cascade {
namespace {

constexpr GatedCosts costs = { 1000.0, 100.0, 150.0, 600.0 };

TEST(LinearPlan, BytesAreThoseOfEachKindOfToken) {
    EXPECT_DOUBLE_EQ(bytes_read(costs, { 0.0, 0.0 }), 1100.0);
    EXPECT_DOUBLE_EQ(bytes_read(costs, { 1.0, 0.0 }), 250.0);
    EXPECT_DOUBLE_EQ(bytes_read(costs, { 0.0, 1.0 }), 700.0);
    EXPECT_DOUBLE_EQ(bytes_read(costs, { 0.25, 0.5 }), 100.0 + 37.5 + 300.0 + 250.0);
}

TEST(LinearPlan, PaysWhereEnoughTokensPass) {
    EXPECT_FALSE(gating_pays(costs, { 0.0, 0.0 }));
    EXPECT_FALSE(gating_pays(costs, { 0.15, 0.0 })); // fewer bytes, but within the reserve
    EXPECT_TRUE(gating_pays(costs, { 0.2, 0.0 }));
    EXPECT_TRUE(gating_pays(costs, { 0.0, 0.5 }));
    EXPECT_FALSE(gating_pays({ 1000.0, 1000.0, 1.0, 1.0 }, { 1.0, 0.0 })) << "a basis as large as the maps";
    EXPECT_FALSE(gating_pays({}, { 1.0, 0.0 })) << "nothing to read";
}

} // namespace
} // namespace cascade
