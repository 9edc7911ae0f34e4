// The parts of `cascade doctor` that can be tried without a model: child processes, the processor, the variables.
#include "cli/child.h"
#include "cli/cpu.h"
#include "cli/doctor.h"
#include "cli/sha256.h"
#include "sidecar/samples.h"

#include <csignal>
#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>
#include <set>
#include <sstream>
#include <stdexcept>
#include <unistd.h>

namespace cascade::cli {
namespace {

constexpr std::chrono::seconds limit{ 20 };
using End = ChildResult::End;

TEST(Child, returns_what_it_found) {
    const std::string large(300000, 'x'); // more than a pipe holds
    const ChildResult result = in_child(
        [&] {
            std::fputs("to stderr", stderr);
            return large;
        },
        limit);
    EXPECT_EQ(result.end, End::finished);
    EXPECT_TRUE(result.output == large);
    EXPECT_EQ(result.errors, "to stderr");
    EXPECT_EQ(result.misfortune(), "");
}

TEST(Child, that_throws_crashes_or_hangs_is_survived) {
    const ChildResult threw = in_child([]() -> std::string { throw std::runtime_error("no tea"); }, limit);
    EXPECT_EQ(threw.end, End::failed);
    EXPECT_EQ(threw.errors, "no tea");
    for (const int signal : { SIGSEGV, SIGILL, SIGABRT }) {
        const ChildResult crashed = in_child(
            [&] {
                raise(signal);
                return "";
            },
            limit);
        EXPECT_EQ(crashed.end, End::crashed);
        EXPECT_EQ(crashed.code, signal);
    }
    const ChildResult left = in_child([]() -> std::string { _exit(3); }, limit);
    EXPECT_TRUE(left.end == End::crashed && left.code == 3);
    const ChildResult hung = in_child(
        [] {
            pause();
            return "";
        },
        std::chrono::seconds(1));
    EXPECT_EQ(hung.end, End::too_long);
}

std::set<std::string> flags_of_linux() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("flags") || line.starts_with("Features")) {
            std::istringstream words(line.substr(line.find(':') + 1));
            return { std::istream_iterator<std::string>(words), {} };
        }
    }
    return {};
}

TEST(Cpu, features_are_those_that_linux_sees) {
    const std::set<std::string> seen = flags_of_linux();
    if (seen.empty()) {
        GTEST_SKIP() << "/proc/cpuinfo has no flags here";
    }
    for (const CpuFeature & feature : cpu_features()) {
        EXPECT_EQ(feature.enabled, seen.contains(feature.name)) << feature.name;
        EXPECT_TRUE(feature.reported || !feature.enabled) << feature.name;
    }
}

TEST(Cpu, amx_is_tried_and_survived) {
    const bool reported = flags_of_linux().contains("amx_tile");
    EXPECT_EQ(try_amx() == AmxTrial::absent, !reported);
}

TEST(Cpu, there_are_processors_and_memory) {
    EXPECT_GE(usable_cpus(), 1);
    EXPECT_GT(memory().total, memory().available / 2);
    EXPECT_GT(memory().available, 0U);
}

Checks problems(const std::vector<std::string> & environment) {
    Settings settings;
    Checks checks;
    for (const Check & check : check_variables(environment, settings)) {
        if (check.health == Health::problem) {
            checks.push_back(check);
        }
    }
    return checks;
}

TEST(Variables, that_are_understood_are_shown) {
    Settings settings;
    const Checks checks = check_variables({ "HOME=/", "GGML_CASCADE=reference", "GGML_CASCADE_STATS=-" }, settings);
    ASSERT_EQ(checks.size(), 1U);
    EXPECT_EQ(checks[0].health, Health::ok);
    EXPECT_EQ(checks[0].finding, "mode reference, GGML_CASCADE=reference, GGML_CASCADE_STATS=-");
    EXPECT_EQ(settings.mode, Mode::reference);
    EXPECT_TRUE(problems({}).empty());
}

TEST(TheSidecar, is_checked_against_the_models_file) {
    const std::string path = testing::TempDir() + "doctor_test_" + std::to_string(::getpid());
    std::ofstream(path + ".model") << "abc";
    sidecar::Sidecar file = sidecar::test::sample();
    file.model_sha256 = sha256_of_file(path + ".model");
    ASSERT_TRUE(sidecar::save(file, path));
    Settings settings;
    EXPECT_TRUE(check_sidecar("", settings).empty());
    settings.mode = Mode::near;
    settings.sidecar = path;
    const Check good = check_sidecar(path + ".model", settings).at(0);
    EXPECT_EQ(good.health, Health::ok) << good.finding;
    EXPECT_NE(good.finding.find("wiki.test.raw"), std::string::npos) << good.finding;
    settings.epsilon = 0.1F;
    EXPECT_EQ(check_sidecar(path + ".model", settings).at(0).health, Health::note);
    settings.epsilon = -1.0F;
    std::ofstream(path + ".model") << "another";
    const Check other = check_sidecar(path + ".model", settings).at(0);
    EXPECT_EQ(other.health, Health::note);
    EXPECT_NE(other.finding.find("another file"), std::string::npos) << other.finding;
    std::ofstream(path) << "damaged";
    const Check bad = check_sidecar("", settings).at(0);
    EXPECT_EQ(bad.health, Health::problem);
    EXPECT_NE(bad.remedy.find("cascade tune"), std::string::npos);
    std::remove(path.c_str());
    std::remove((path + ".model").c_str());
}

TEST(Variables, that_are_not_are_problems_with_a_remedy) {
    const Checks value = problems({ "GGML_CASCADE=fastest" });
    ASSERT_EQ(value.size(), 1U);
    EXPECT_NE(value[0].finding.find("GGML_CASCADE=fastest is unknown"), std::string::npos);
    EXPECT_NE(value[0].remedy.find("exact"), std::string::npos);
    const Checks name = problems({ "GGML_CASCADE_STAT=x" });
    ASSERT_EQ(name.size(), 1U);
    EXPECT_EQ(name[0].remedy, "did you mean GGML_CASCADE_STATS?");
    EXPECT_EQ(problems({ "GGML_CASCADE_STATS=/no/such/folder/x" }).size(), 1U);
    EXPECT_EQ(problems({ "CASCADE_ISA=abacus" }).size(), 1U);
    EXPECT_EQ(problems({ "CASCADE_ISA=plain" }).size(), 0U);
}

TEST(Diagnosis, is_a_line_for_each_check_and_a_sentence) {
    Diagnosis diagnosis;
    diagnosis.checks = { { "pot", Health::ok, "there", "", {} }, { "water", Health::note, "cold", "heat it", {} } };
    diagnosis.verdict = "boil";
    EXPECT_FALSE(diagnosis.has_problem());
    EXPECT_EQ(diagnosis_text(diagnosis), "ok       pot    there\n"
                                         "note     water  cold; heat it\n"
                                         "\nWhat cascade would do here: boil.\n");
    diagnosis.checks.push_back({ "stove", Health::problem, "off", "turn it on", {} });
    EXPECT_TRUE(diagnosis.has_problem());
    EXPECT_EQ(diagnosis_json(diagnosis)["checks"][2]["health"], "problem");
}

} // namespace
} // namespace cascade::cli
