#include "plan/costs.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

namespace cascade {
namespace {

constexpr const char * machine = "a processor, avx2";

// seconds = fixed + by_work * queries * tokens, for each way.
CostTable made_table(double engine, double fast, double joint, double joint_fixed) {
    CostTable table;
    for (size_t q = 0; q < CostTable::queries.size(); q++) {
        for (size_t t = 0; t < CostTable::tokens.size(); t++) {
            const auto work = static_cast<double>(CostTable::queries[q] * CostTable::tokens[t]);
            table[Way::engine][q][t] = 1e-5 + (engine * work);
            table[Way::fast][q][t] = 1e-5 + (fast * work);
            table[Way::joint][q][t] = joint_fixed + (joint * work);
        }
    }
    return table;
}

TEST(Costs, LinesGoThroughWhatWasMeasuredAndBeyond) {
    const CostTable table = made_table(1e-8, 1e-9, 1e-10, 1e-4);
    for (const int64_t queries : { 1, 7, 16, 100, 128, 512 }) {
        for (const int64_t tokens : { 1024, 3000, 4096, 32768 }) {
            const auto work = static_cast<double>(queries * tokens);
            EXPECT_NEAR(table.seconds(Way::engine, queries, tokens), 1e-5 + (1e-8 * work), 1e-12);
            EXPECT_NEAR(table.seconds(Way::joint, queries, tokens), 1e-4 + (1e-10 * work), 1e-12);
        }
    }
    EXPECT_NEAR(table.seconds_on_cover(0.5, 16, 4096),
                table.seconds(Way::joint, 16, 4096) + (0.5 * table.seconds(Way::fast, 16, 4096)), 1e-12);
}

TEST(Costs, NoiseNeverMakesMoreWorkCheaper) {
    CostTable table = made_table(1e-8, 1e-9, 1e-10, 1e-4);
    table[Way::fast][0] = { 3e-4, 1e-4 };
    table[Way::fast][1] = { 2e-4, 1e-4 };
    double before = 0.0;
    for (int64_t tokens = 256; tokens <= 65536; tokens *= 2) {
        const double now = table.seconds(Way::fast, 1, tokens);
        EXPECT_GT(now, 0.0);
        EXPECT_GE(now, before);
        before = now;
    }
    EXPECT_GE(table.seconds(Way::fast, 8, 2048), table.seconds(Way::fast, 1, 2048));
}

TEST(Costs, CoversPayFromWhereTheLinesCross) {
    const CostTable table = made_table(1e-8, 1e-8, 1e-9, 1e-4);
    // 1e-4 + 1e-9 n = 1e-5 + 1e-8 n
    const int64_t from = table.covers_pay_from(0.0, 1, 32768);
    EXPECT_GE(from, 10000);
    EXPECT_LT(from, 10000 + 512);
    EXPECT_GT(table.covers_pay_from(0.5, 1, 65536), from);
    EXPECT_EQ(made_table(1e-8, 1e-8, 1e-7, 1e-4).covers_pay_from(0.0, 1, 32768), 0);
}

TEST(Costs, MeasuredAgainOnlyTheLeastCounts) {
    CostTable table = made_table(1e-8, 1e-9, 1e-10, 1e-4);
    const CostTable undisturbed = table;
    CostTable other = table;
    table[Way::joint][2][1] *= 10.0;
    other[Way::engine][0][0] *= 3.0;
    EXPECT_FALSE(table.is_settled());
    table.merge(other);
    EXPECT_EQ(table.of_way, undisturbed.of_way);
    EXPECT_EQ(table.times_measured, 2);
    table.merge(table);
    EXPECT_TRUE(table.is_settled());
    const auto found = costs_in_text(costs_as_text(machine, { { "a", table } }), machine);
    EXPECT_TRUE(found && found->at("a").is_settled());
}

TEST(Costs, TextRoundTrips) {
    const CostTables tables = { { "9/3 heads", made_table(1e-8, 1e-9, 1e-10, 1e-4) },
                                { "others", made_table(2e-8, 1e-9, 1e-10, 1e-4) } };
    const std::string text = costs_as_text(machine, tables);
    const auto found = costs_in_text(text, machine);
    ASSERT_TRUE(found);
    ASSERT_EQ(found->size(), 2U);
    EXPECT_EQ(found->at("others").of_way, tables.at("others").of_way);
    EXPECT_FALSE(costs_in_text(text, "another processor"));
}

TEST(Costs, NoTextIsTrusted) {
    const std::string text = costs_as_text(machine, { { "a", made_table(1e-8, 1e-9, 1e-10, 1e-4) } });
    for (size_t length = 0; length + 1 < text.size(); length += 7) {
        const auto found = costs_in_text(text.substr(0, length), machine);
        EXPECT_FALSE(found && !found->empty());
    }
    for (size_t at = 0; at < text.size(); at++) {
        for (const char byte : { '\0', '9', '-', '[', '"', '\xFF' }) {
            std::string wrong = text;
            wrong[at] = byte;
            if (const auto found = costs_in_text(wrong, machine)) {
                for (const auto & [key, table] : *found) {
                    EXPECT_TRUE(table.is_plausible());
                }
            }
        }
    }
    for (const char * bad : { "0", "-1", "1e300", "null", "\"1\"", "[]" }) {
        std::string wrong = text;
        const size_t at = wrong.find("\"fast\"");
        const size_t number = wrong.find_first_of("0123456789", at);
        wrong.replace(number, wrong.find_first_of(",] \n", number) - number, bad);
        const auto found = costs_in_text(wrong, machine);
        EXPECT_TRUE(!found || found->empty()) << bad;
    }
}

TEST(Costs, FileIsWrittenWholeAndReadBack) {
    const auto folder = std::filesystem::temp_directory_path() / ("costs-" + std::to_string(::getpid()));
    const std::string file = (folder / "deep" / "costs.json").string();
    ASSERT_TRUE(write_costs_file(file, "some text"));
    EXPECT_EQ(read_costs_file(file), "some text");
    EXPECT_EQ(read_costs_file(file + ".none"), "");
    EXPECT_FALSE(write_costs_file("/proc/none/costs.json", "x"));
    std::ofstream(file, std::ios::binary) << std::string((1 << 20) + 1, 'x');
    EXPECT_EQ(read_costs_file(file), "");
    std::filesystem::remove_all(folder);
}

TEST(Costs, FileStandsInTheUsersCache) {
    EXPECT_EQ(costs_file("/given"), "/given");
    EXPECT_EQ(costs_file("-"), "");
    setenv("XDG_CACHE_HOME", "/cache", 1);
    EXPECT_EQ(costs_file(""), "/cache/cascade/costs.json");
    setenv("XDG_CACHE_HOME", "relative", 1);
    setenv("HOME", "/home/me", 1);
    EXPECT_EQ(costs_file(""), "/home/me/.cache/cascade/costs.json");
    unsetenv("XDG_CACHE_HOME");
    EXPECT_EQ(costs_file(""), "/home/me/.cache/cascade/costs.json");
    unsetenv("HOME");
    EXPECT_EQ(costs_file(""), "");
}

} // namespace
} // namespace cascade
