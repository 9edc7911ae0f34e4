// What a long run has finished: lines come back to the same settings and to no others.
#include "cli/resume_file.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <unistd.h>

namespace cascade::cli {
namespace {

namespace fs = std::filesystem;

class ResumeFileTest : public testing::Test {
  protected:
    void SetUp() override {
        directory = fs::path(testing::TempDir()) / ("resume_file_" + std::to_string(::getpid()));
        fs::create_directories(directory);
        ::setenv("XDG_CACHE_HOME", (directory / "cache").c_str(), 1);
    }
    void TearDown() override { fs::remove_all(directory); }

    static std::vector<int> lines(const std::string & settings, bool resume = true, const std::string & kind = "eval") {
        std::vector<int> numbers;
        const ResumeFile file(kind, settings, resume,
                              [&](const nlohmann::json & line) { numbers.push_back(line.at("number").get<int>()); });
        return numbers;
    }
    static void add(const std::string & settings, const std::vector<int> & numbers, bool resume = true) {
        ResumeFile file("eval", settings, resume, [](const nlohmann::json &) {});
        for (const int number : numbers) {
            file.add({ { "number", number } });
        }
    }
    static std::string path(const std::string & settings) {
        return ResumeFile("eval", settings, true, [](const nlohmann::json &) {}).path();
    }

    fs::path directory;
};

using Numbers = std::vector<int>;

TEST_F(ResumeFileTest, LinesComeBackInOrder) {
    EXPECT_EQ(lines("a"), Numbers{});
    add("a", { 3, 1 });
    add("a", { 2 });
    EXPECT_EQ(lines("a"), (Numbers{ 3, 1, 2 }));
}

TEST_F(ResumeFileTest, OtherSettingsHaveTheirOwn) {
    add("a", { 1 });
    add("b", { 2 });
    EXPECT_EQ(lines("a"), Numbers{ 1 });
    EXPECT_EQ(lines("b"), Numbers{ 2 });
    EXPECT_EQ(lines("ab"), Numbers{});
    EXPECT_EQ(lines("a", true, "analyze"), Numbers{}) << "another kind of run";
}

TEST_F(ResumeFileTest, WithoutResumeTheyAreForgottenOnceThereAreOthers) {
    add("a", { 1, 2 });
    EXPECT_EQ(lines("a", false), Numbers{});
    EXPECT_EQ(lines("a"), (Numbers{ 1, 2 })) << "nothing was added";
    add("a", { 3, 4 }, false);
    EXPECT_EQ(lines("a"), (Numbers{ 3, 4 }));
}

TEST_F(ResumeFileTest, WhatIsNoLineOfOursIsIgnored) {
    add("a", { 1 });
    std::ofstream(path("a"), std::ios::app) << "\nnot json\n[]\nnull\n{}\n{\"number\": \"x\"}\n{\"numb";
    add("a", { 2 });
    EXPECT_EQ(lines("a"), (Numbers{ 1, 2 }));
}

TEST_F(ResumeFileTest, TextThatIsNoUtf8CanBeWritten) {
    ResumeFile file("eval", "a", true, [](const nlohmann::json &) {});
    file.add({ { "number", 5 }, { "text", "\xC3" } });
    EXPECT_EQ(lines("a"), Numbers{ 5 });
}

TEST_F(ResumeFileTest, SaysWhereItCannotWrite) {
    std::ofstream(directory / "cache") << "a file where the directory should be";
    ResumeFile file("eval", "a", true, [](const nlohmann::json &) {});
    EXPECT_THROW(file.add({ { "number", 1 } }), std::runtime_error);
}

TEST_F(ResumeFileTest, AFileIsKnownByWhatItIsNow) {
    const std::string some = (directory / "text").string();
    std::ofstream(some) << "words";
    const std::string before = file_identity(some);
    EXPECT_EQ(before, file_identity(some));
    std::ofstream(some) << "other words";
    EXPECT_NE(before, file_identity(some));
}

} // namespace
} // namespace cascade::cli
