#include "backend/engine.h"

#include <gtest/gtest.h>

namespace cascade::backend {
namespace {

const std::string version = ggml_version();
const std::string commit = ggml_commit();

TEST(Engine, TheOneWeWereBuiltForIsAccepted) { EXPECT_EQ(engine_mismatch(version, commit), ""); }

TEST(Engine, ALongerAbbreviationOfTheCommitIsTheSameCommit) {
    ASSERT_GE(commit.size(), 7U);
    EXPECT_EQ(engine_mismatch(version, commit + "0123"), "");
    EXPECT_EQ(engine_mismatch(version, commit.substr(0, 7)), "");
}

TEST(Engine, AnythingElseIsRefusedWithBothNamesAndTheRemedy) {
    for (const std::string & other :
         { std::string("0000000"), commit.substr(0, 6), std::string("unknown"), commit + "-dirty", std::string() }) {
        EXPECT_NE(engine_mismatch(version, other), "") << other;
    }
    const std::string message = engine_mismatch("0.1.2", commit);
    EXPECT_NE(message.find("0.1.2"), std::string::npos);
    EXPECT_NE(message.find(version), std::string::npos);
    EXPECT_NE(message.find("CASCADE_ENGINE_DIR"), std::string::npos);
}

} // namespace
} // namespace cascade::backend
