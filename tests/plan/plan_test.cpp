#include "plan/plan.h"

#include <gtest/gtest.h>

namespace cascade {
namespace {

Attention attention_of(int64_t queries, int64_t tokens) {
    Attention a;
    a.queries = queries;
    a.tokens = tokens;
    a.heads = 4;
    a.kv_heads = 2;
    a.streams = 1;
    a.key_size = a.value_size = 64;
    return a;
}

Settings near() {
    Settings settings;
    settings.mode = Mode::near;
    return settings;
}

// The engine's cost is 1 for a token, our kernels' a half of it, a cover's is that of 2000 tokens and a tenth.
CostTable made_costs() {
    CostTable costs;
    for (size_t q = 0; q < CostTable::queries.size(); q++) {
        for (size_t t = 0; t < CostTable::tokens.size(); t++) {
            const auto queries = static_cast<double>(CostTable::queries[q]);
            const auto tokens = static_cast<double>(CostTable::tokens[t]);
            costs[Way::engine][q][t] = 1e-6 * queries * tokens;
            costs[Way::fast][q][t] = 0.5e-6 * queries * tokens;
            costs[Way::joint][q][t] = queries * ((1e-6 * 0.5 * 2000.0) + (1e-6 * 0.1 * tokens));
        }
    }
    return costs;
}

Circumstances cached(const CostTable * costs, Way before = Way::engine, double opened = 0.0) {
    Circumstances circumstances;
    circumstances.cached = true;
    circumstances.epsilon = 0.04F;
    circumstances.costs = costs;
    circumstances.before = before;
    circumstances.opened = opened;
    circumstances.indexed = true;
    return circumstances;
}

Way way_of(const Settings & settings, const Attention & attention, const Circumstances & circumstances) {
    const Decision decision = plan_attention(settings, attention, circumstances);
    EXPECT_EQ(decision.way == Way::engine, !decision.why.empty());
    return decision.way;
}

TEST(Plan, TheCheapestWayIsTaken) {
    const CostTable costs = made_costs();
    EXPECT_EQ(way_of(near(), attention_of(1, 1024), cached(&costs)), Way::fast);
    EXPECT_EQ(way_of(near(), attention_of(1, 2304), cached(&costs)), Way::fast);
    EXPECT_EQ(way_of(near(), attention_of(1, 2816), cached(&costs)), Way::joint);
    EXPECT_EQ(way_of(near(), attention_of(512, 8192), cached(&costs)), Way::joint);
    CostTable slow = costs;
    slow[Way::fast] = costs[Way::engine];
    for (auto & row : slow[Way::fast]) {
        row = { 2.0 * row[0], 2.0 * row[1] };
    }
    slow[Way::joint] = slow[Way::fast];
    EXPECT_EQ(way_of(near(), attention_of(1, 8192), cached(&slow)), Way::engine);
}

TEST(Plan, WhatIsOpenedCounts) {
    const CostTable costs = made_costs();
    EXPECT_EQ(way_of(near(), attention_of(1, 4096), cached(&costs, Way::engine, 0.1)), Way::joint);
    EXPECT_EQ(way_of(near(), attention_of(1, 4096), cached(&costs, Way::engine, 0.8)), Way::fast);
}

TEST(Plan, DecisionsDoNotFlap) {
    const CostTable costs = made_costs();
    // a cover and the kernels cost the same at 2500 tokens
    EXPECT_EQ(way_of(near(), attention_of(1, 2540), cached(&costs, Way::fast)), Way::fast);
    EXPECT_EQ(way_of(near(), attention_of(1, 2540), cached(&costs, Way::joint)), Way::joint);
    EXPECT_EQ(way_of(near(), attention_of(1, 2460), cached(&costs, Way::fast)), Way::fast);
    EXPECT_EQ(way_of(near(), attention_of(1, 2460), cached(&costs, Way::joint)), Way::joint);
    EXPECT_EQ(way_of(near(), attention_of(1, 2048), cached(&costs, Way::joint)), Way::fast);
}

TEST(Plan, TheFirstIndexMustPay) {
    const CostTable costs = made_costs();
    Circumstances circumstances = cached(&costs);
    EXPECT_EQ(way_of(near(), attention_of(1, 2816), circumstances), Way::joint);
    circumstances.indexed = false;
    EXPECT_EQ(way_of(near(), attention_of(1, 2816), circumstances), Way::fast);
    EXPECT_EQ(way_of(near(), attention_of(1, 8192), circumstances), Way::joint);
}

TEST(Plan, SomeThingsAreLeftAloneWhateverTheyCost) {
    const CostTable costs = made_costs();
    Circumstances circumstances = cached(&costs);
    EXPECT_EQ(way_of(near(), attention_of(1, 256), circumstances), Way::engine);
    circumstances.epsilon = 0.0F;
    EXPECT_EQ(way_of(near(), attention_of(1, 8192), circumstances), Way::engine);
    circumstances = cached(&costs);
    circumstances.sliding = true;
    EXPECT_EQ(way_of(near(), attention_of(1, 8192), circumstances), Way::engine);
    circumstances = cached(&costs);
    circumstances.cached = false;
    EXPECT_EQ(way_of(near(), attention_of(1, 8192), circumstances), Way::engine);
    Attention capped = attention_of(1, 8192);
    capped.soft_cap = 1.0F;
    EXPECT_EQ(way_of(near(), capped, cached(&costs)), Way::engine);
    EXPECT_FALSE(has_choice(near(), capped, cached(nullptr)));
    Settings exact;
    EXPECT_EQ(way_of(exact, attention_of(1, 8192), cached(&costs)), Way::engine);
    EXPECT_FALSE(has_choice(exact, attention_of(1, 8192), cached(nullptr)));
    EXPECT_TRUE(has_choice(near(), attention_of(1, 8192), cached(nullptr)));
}

TEST(Plan, AWayCanBeForced) {
    const CostTable costs = made_costs();
    Settings settings = near();
    for (const Way way : { Way::engine, Way::fast, Way::joint }) {
        settings.way = way;
        EXPECT_FALSE(has_choice(settings, attention_of(1, 8192), cached(nullptr)));
        EXPECT_EQ(way_of(settings, attention_of(1, 8192), cached(&costs)), way);
        EXPECT_EQ(way_of(settings, attention_of(1, 1024), cached(&costs)), way);
    }
}

TEST(Plan, WithoutCostsLongContextsAreCovered) {
    EXPECT_EQ(way_of(near(), attention_of(1, 512), cached(nullptr)), Way::engine);
    EXPECT_EQ(way_of(near(), attention_of(1, 1024), cached(nullptr)), Way::joint);
}

} // namespace
} // namespace cascade
