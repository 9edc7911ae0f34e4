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
    for (const Mode mode : { Mode::off, Mode::exact, Mode::reference }) {
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
    EXPECT_NE(complaints[0].find("off, exact, reference"), std::string::npos);
}

} // namespace
} // namespace cascade
