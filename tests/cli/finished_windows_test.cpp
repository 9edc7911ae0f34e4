// The file of finished windows: what is written comes back, and whatever else stands there is ignored.
#include "cli/finished_windows.h"

#include "cli/analyze_run.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <unistd.h>

namespace cascade::cli {
namespace {

namespace fs = std::filesystem;
using analysis::Figure;
using analysis::Method;
using analysis::Window;

class FinishedWindowsTest : public testing::Test {
  protected:
    void SetUp() override {
        directory = fs::path(testing::TempDir()) / ("finished_windows_" + std::to_string(::getpid()));
        fs::create_directories(directory);
        ::setenv("XDG_CACHE_HOME", (directory / "cache").c_str(), 1);
        options.model = write("model", "weights");
        options.text = write("text", "words");
        options.methods = { Method::threshold };
        options.resume = true;
    }
    void TearDown() override { fs::remove_all(directory); }

    std::string write(const std::string & name, const std::string & content) const {
        std::ofstream(directory / name) << content;
        return (directory / name).string();
    }

    static Window window(int64_t index) {
        Window made;
        made.tokens = 64;
        made.index = index;
        made.seconds = 0.1;
        analysis::Series series{ "residual", 0.3, Method::threshold, {}, {} };
        series.layers.resize(2);
        series.layers[0][Figure::r] = series.layers[1][Figure::r] = 10.0 + static_cast<double>(index);
        made.series.push_back(series);
        made.similarity.push_back({ "residual", 0.3, { { 1.0, 0.5 }, { 0.5, 1.0 } } });
        made.pieces = { "cut \xE2\x82" };
        return made;
    }

    fs::path directory;
    AnalyzeOptions options;
};

TEST_F(FinishedWindowsTest, WhatIsAddedComesBack) {
    FinishedWindows first(options);
    first.add(window(0));
    first.add(window(3));
    const FinishedWindows again(options);
    EXPECT_EQ(again.path(), first.path());
    ASSERT_NE(again.find(64, 3), nullptr);
    EXPECT_EQ(again.find(64, 3)->series.front().layers.front()[Figure::r], 13.0);
    EXPECT_EQ(again.find(64, 1), nullptr);
    EXPECT_EQ(again.find(65, 0), nullptr);
}

TEST_F(FinishedWindowsTest, AreForgottenWithoutResumeOnceThereAreOthers) {
    FinishedWindows(options).add(window(0));
    AnalyzeOptions anew = options;
    anew.resume = false;
    EXPECT_EQ(FinishedWindows(anew).find(64, 0), nullptr);
    EXPECT_NE(FinishedWindows(options).find(64, 0), nullptr);
    FinishedWindows fresh(anew);
    fresh.add(window(1));
    fresh.add(window(2));
    EXPECT_EQ(FinishedWindows(options).find(64, 0), nullptr);
    EXPECT_NE(FinishedWindows(options).find(64, 1), nullptr);
    EXPECT_NE(FinishedWindows(options).find(64, 2), nullptr);
}

TEST_F(FinishedWindowsTest, BelongToTheirSettings) {
    FinishedWindows(options).add(window(0));
    const auto known = [](const AnalyzeOptions & some) { return FinishedWindows(some).find(64, 0) != nullptr; };
    AnalyzeOptions other = options;
    other.taus = { 0.31 };
    EXPECT_FALSE(known(other));
    other = options;
    other.methods = { Method::linked };
    EXPECT_FALSE(known(other));
    other = options;
    other.sources = { Source::key };
    EXPECT_FALSE(known(other));
    other = options;
    other.sign = Sign::kept;
    EXPECT_FALSE(known(other));
    other = options;
    other.windows = 9; // more of the same
    other.lengths = { 64, 128 };
    EXPECT_TRUE(known(other));
    write("text", "other words");
    EXPECT_FALSE(known(options)) << "another text";
}

TEST_F(FinishedWindowsTest, OtherLinesAreIgnored) {
    FinishedWindows first(options);
    first.add(window(0));
    std::string good;
    std::getline(std::ifstream(first.path()) >> std::ws, good);
    {
        std::ofstream file(first.path(), std::ios::app);
        file
            << std::string("\n\0\n", 3) << "not json\n[]\n{}\nnull\n"
            << std::string(100000, '[') << "\n"
            << R"({"tokens": 64, "index": 5})" << "\n"
            << R"({"tokens": "64", "index": 6, "series": [], "similarity": [], "pieces": [], "seconds": 1, "bare": null})"
            << "\n\xFF\xFE\n"
            << good.substr(0, good.size() / 2) << "\n";
    }
    first.add(window(2));
    {
        std::ofstream file(first.path(), std::ios::app);
        file << good.substr(0, good.size() - 1); // killed while writing
    }
    const FinishedWindows again(options);
    EXPECT_NE(again.find(64, 0), nullptr);
    EXPECT_NE(again.find(64, 2), nullptr);
    EXPECT_EQ(again.find(64, 5), nullptr);
    EXPECT_EQ(again.find(64, 6), nullptr);
}

// A line cut short has no end: what is added after it must not be lost with it.
TEST_F(FinishedWindowsTest, AreAddedAfterALineCutShort) {
    FinishedWindows first(options);
    first.add(window(0));
    {
        std::ofstream file(first.path(), std::ios::app);
        file << R"({"tokens": 64, "ind)";
    }
    FinishedWindows(options).add(window(1));
    const FinishedWindows again(options);
    EXPECT_NE(again.find(64, 0), nullptr);
    EXPECT_NE(again.find(64, 1), nullptr);
}

TEST_F(FinishedWindowsTest, SayWhereTheyCannotBeWritten) {
    write("cache", "a file where the directory should be");
    FinishedWindows nowhere(options);
    try {
        nowhere.add(window(0));
        FAIL() << "written nowhere";
    } catch (const std::runtime_error & error) {
        EXPECT_NE(std::string(error.what()).find("XDG_CACHE_HOME"), std::string::npos) << error.what();
    }
}

} // namespace
} // namespace cascade::cli
