// What `cascade bench` reads from the plugin's statistics, and the bytes of weights it counts.
#include "cli/plugin.h"
#include "cli/weights.h"

#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>
#include <string>

namespace cascade::cli {
namespace {

struct File {
    explicit File(const std::string & text) { std::ofstream(name) << text; }
    ~File() { std::remove(name.c_str()); }
    std::string name = testing::TempDir() + "plugin_figures.jsonl";
};

TEST(PluginFigures, AreThoseOfTheLastSummary) {
    const File file(R"({"type": "summary", "failures": 1, "seconds_old": 4})"
                    "\n"
                    R"({"type": "summary", "failures": 2, "seconds_ours": 1.5, "microseconds_cover": 250, "nodes": 9})"
                    "\n"
                    R"({"type": "graph", "seconds_ours": 7})"
                    "\nnot JSON\n");
    const PluginFigures figures = read_figures(file.name);
    EXPECT_EQ(figures.failures, 2);
    ASSERT_EQ(figures.seconds.size(), 2U) << "any part that the plugin names, and nothing else";
    EXPECT_DOUBLE_EQ(figures.seconds.at("ours"), 1.5);
    EXPECT_DOUBLE_EQ(figures.seconds.at("cover"), 250e-6);
}

TEST(PluginFigures, OfAPieceOfWork) {
    const PluginFigures before = { { { "ours", 1.0 } }, 3 };
    const PluginFigures after = { { { "ours", 1.75 }, { "cover", 0.5 } }, 4 };
    const PluginFigures between = after - before;
    EXPECT_DOUBLE_EQ(between.seconds.at("ours"), 0.75);
    EXPECT_DOUBLE_EQ(between.seconds.at("cover"), 0.5) << "a part may begin late";
    EXPECT_EQ(between.failures, 1);
    EXPECT_TRUE(read_figures("/nowhere").seconds.empty());
}

TEST(Weights, OnceABatchAndExpertsByShare) {
    const Weights dense = { 1000, 0, 1.0 };
    EXPECT_DOUBLE_EQ(dense.bytes_per_token(1), 1000.0);
    EXPECT_DOUBLE_EQ(dense.bytes_per_token(10), 100.0);
    const Weights mixed = { 1000, 8000, 0.25 };
    EXPECT_DOUBLE_EQ(mixed.bytes_per_token(1), 3000.0);
    EXPECT_DOUBLE_EQ(mixed.bytes_per_token(10), 900.0) << "ten tokens touch every expert at most once";
}

} // namespace
} // namespace cascade::cli
