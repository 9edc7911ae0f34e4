#include "cascade/settings.h"

#include <gtest/gtest.h>
#include <map>

namespace cascade {
namespace {

Settings settings_of(const std::map<std::string, std::string> & variables, std::vector<std::string> & complaints) {
    return settings_from(
        [&](const char * name) {
            const auto found = variables.find(name);
            return found == variables.end() ? nullptr : found->second.c_str();
        },
        complaints);
}

TEST(Settings, WithoutVariablesEverythingIsExact) {
    std::vector<std::string> complaints;
    const Settings settings = settings_of({}, complaints);
    EXPECT_EQ(settings.mode, Mode::exact);
    EXPECT_EQ(settings.fault, Fault::none);
    EXPECT_TRUE(settings.stats.empty());
    EXPECT_TRUE(complaints.empty());
    EXPECT_FALSE(settings.rewrites());
}

TEST(Settings, EveryModeHasAName) {
    for (const Mode mode :
         { Mode::off, Mode::exact, Mode::fast, Mode::near, Mode::balanced, Mode::gated, Mode::reference }) {
        EXPECT_EQ(parse_mode(mode_name(mode)), mode);
        EXPECT_NE(mode_names().find(mode_name(mode)), std::string_view::npos);
    }
    EXPECT_EQ(parse_mode("Exact"), std::nullopt);
}

TEST(Settings, AnUnknownValueIsNamedWithItsRemedyAndRunsExact) {
    std::vector<std::string> complaints;
    const Settings settings = settings_of({ { "GGML_CASCADE", "fastest" }, { "GGML_CASCADE_FAULT", "x" } }, complaints);
    EXPECT_EQ(settings.mode, Mode::exact);
    ASSERT_EQ(complaints.size(), 2U);
    EXPECT_NE(complaints[0].find("GGML_CASCADE=fastest"), std::string::npos);
    EXPECT_NE(complaints[0].find("off, exact, fast, near, balanced, gated, reference"), std::string::npos);
}

TEST(Settings, AWayCanBeForced) {
    std::vector<std::string> complaints;
    EXPECT_FALSE(settings_of({}, complaints).way);
    for (const Way way : { Way::engine, Way::fast, Way::joint, Way::gated }) {
        EXPECT_EQ(settings_of({ { "GGML_CASCADE_WAY", std::string(way_name(way)) } }, complaints).way, way);
    }
    EXPECT_EQ(settings_of({ { "GGML_CASCADE_COSTS", "/a/file" } }, complaints).costs, "/a/file");
    EXPECT_TRUE(complaints.empty());
    for (const char * bad : { "reference", "Joint", "?" }) {
        EXPECT_FALSE(settings_of({ { "GGML_CASCADE_WAY", bad } }, complaints).way);
    }
    EXPECT_EQ(complaints.size(), 3U);
}

TEST(Settings, ASidecarIsAFilesName) {
    std::vector<std::string> complaints;
    EXPECT_TRUE(settings_of({ { "GGML_CASCADE", "near" } }, complaints).sidecar.empty());
    const Settings named = settings_of({ { "GGML_CASCADE_SIDECAR", "/a b/model.sidecar.gguf" } }, complaints);
    EXPECT_EQ(named.sidecar, "/a b/model.sidecar.gguf");
    EXPECT_TRUE(complaints.empty());
}

TEST(Settings, TheGateAndTheAuditAreNumbers) {
    std::vector<std::string> complaints;
    const Settings near = settings_of({ { "GGML_CASCADE", "near" } }, complaints);
    const Settings balanced = settings_of({ { "GGML_CASCADE", "balanced" } }, complaints);
    EXPECT_GT(near.gate(), 0.0F);
    EXPECT_GT(balanced.gate(), near.gate());
    EXPECT_EQ(settings_of({ { "GGML_CASCADE", "gated" } }, complaints).gate(), 0.05F); // as published
    const Settings own = settings_of({ { "GGML_CASCADE_EPS", "0.25" }, { "GGML_CASCADE_AUDIT", "1/500" } }, complaints);
    EXPECT_EQ(own.gate(), 0.25F);
    EXPECT_EQ(own.audit, 500);
    EXPECT_TRUE(complaints.empty());
    for (const char * bad : { "-0.1", "1.5", "x", "0.1x", "nan" }) {
        EXPECT_LT(settings_of({ { "GGML_CASCADE_EPS", bad } }, complaints).epsilon, 0.0F) << bad;
    }
    for (const char * bad : { "1", "2/3", "1/0", "1/-4", "1/", "1/x", "1/99999999999999999999" }) {
        EXPECT_EQ(settings_of({ { "GGML_CASCADE_AUDIT", bad } }, complaints).audit, 0) << bad;
    }
    EXPECT_EQ(complaints.size(), 12U);
}

} // namespace
} // namespace cascade
