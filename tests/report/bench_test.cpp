// Every form of what `cascade bench` measured, from figures made up here.
#include "report/bench_report.h"
#include "report/bench_rows.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <sstream>
#include <string>
#include <vector>

namespace cascade::report {
namespace {

using Lines = std::vector<std::string>;

// llama-bench's, in its order.
const Lines llama_bench_columns = {
    "build_commit",   "build_number",
    "cpu_info",       "gpu_info",
    "backends",       "model_filename",
    "model_type",     "model_size",
    "model_n_params", "n_batch",
    "n_ubatch",       "n_threads",
    "cpu_mask",       "cpu_strict",
    "poll",           "type_k",
    "type_v",         "n_gpu_layers",
    "n_cpu_moe",      "split_mode",
    "main_gpu",       "no_kv_offload",
    "flash_attn",     "devices",
    "tensor_split",   "tensor_buft_overrides",
    "load_mode",      "lazy_mode",
    "embeddings",     "no_op_offload",
    "no_host",        "fit_target",
    "fit_min_ctx",    "n_prompt",
    "n_gen",          "n_depth",
    "test_time",      "avg_ns",
    "stddev_ns",      "avg_ts",
    "stddev_ts",
};

Bench sample() {
    Bench bench;
    bench.info.version = "1.2.3";
    bench.info.build_commit = "abc";
    bench.info.build_number = 7;
    bench.info.bare = { "CPU", "A processor" };
    bench.info.ours = { "Cascade", "A processor, ours" };
    bench.info.model_filename = "somebody's \"model\".gguf";
    bench.info.model_type = "llama 1B";
    bench.info.model_size = 3ULL << 30U;
    bench.info.model_n_params = 1'500'000'000;
    bench.info.mode = "exact";
    bench.info.rounds = 8;
    bench.info.level = 0.99;
    BenchTest test;
    test.n_prompt = 100;
    test.n_depth = 4096;
    test.flash_attn = 1;
    test.test_time = "2026-11-15T00:00:00Z";
    test.bare = { 2.0, 2.02, 2.04, 2.06, 2.08, 2.1, 2.12, 2.14 };
    test.control = { 2.01, 2.01, 2.05, 2.05, 2.09, 2.09, 2.13, 2.13 };
    test.ours = { 1.0, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06, 1.07 };
    test.slower = { 0, 40.0, 50.0, 0.8 };
    test.parts = { { "ours", 0.8 }, { "reading", 0.08 } };
    test.weight_bytes_per_token = 2048.0;
    bench.tests = { test };
    bench.wanted = 1;
    bench.complete = true;
    return bench;
}

Lines lines_of(const std::string & text) {
    Lines lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
        lines.push_back(line);
    }
    return lines;
}

Lines names_of(const nlohmann::ordered_json & row) {
    Lines names;
    for (const auto & [name, value] : row.items()) {
        names.push_back(name);
    }
    return names;
}

TEST(BenchTestNames, AsInLlamaBench) {
    BenchTest test;
    test.n_prompt = 512;
    EXPECT_EQ(test.name(), "pp512");
    test.n_gen = 32;
    EXPECT_EQ(test.name(), "pp512+tg32");
    test.n_prompt = 0;
    test.n_depth = 64;
    EXPECT_EQ(test.name(), "tg32 @ d64");
}

TEST(BenchRows, LlamaBenchsColumnsThenOurs) {
    const Bench bench = sample();
    Lines expected = llama_bench_columns;
    expected.insert(expected.end(), { "mode", "ratio", "ratio_low", "ratio_high", "samples_ns", "samples_ts" });
    for (const bool ours : { false, true }) {
        const auto row = bench_row(bench.info, bench.tests[0], ours);
        EXPECT_EQ(names_of(row), expected);
        EXPECT_EQ(row["backends"], ours ? "Cascade" : "CPU");
        EXPECT_EQ(row["mode"], ours ? "exact" : "bare");
        EXPECT_EQ(row["ratio"].is_null(), !ours);
    }
    const auto ours = bench_row(bench.info, bench.tests[0], true);
    EXPECT_EQ(ours["avg_ns"], 1035000000);
    EXPECT_EQ(ours["stddev_ns"], 24494897); // sqrt(0.0042 / 7)
    EXPECT_EQ(ours["samples_ns"][0], 1000000000);
    EXPECT_DOUBLE_EQ(ours["samples_ts"][0].get<double>(), 100.0);
    EXPECT_NEAR(ours["ratio"].get<double>(), 2.0, 1e-9);
}

TEST(BenchRows, Csv) {
    const Lines lines = lines_of(bench_csv(sample()));
    ASSERT_EQ(lines.size(), 3U);
    EXPECT_EQ(std::count(lines[0].begin(), lines[0].end(), ','), 44);
    EXPECT_NE(lines[1].find(R"("somebody's ""model"".gguf")"), std::string::npos) << lines[1];
    EXPECT_NE(lines[1].find(R"("bare","","","")"), std::string::npos) << lines[1];
    EXPECT_NE(lines[2].find(R"("exact","2.000000","2.000000","2.000000")"), std::string::npos) << lines[2];
}

TEST(BenchRows, JsonLines) {
    const Lines lines = lines_of(bench_jsonl(sample()));
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_EQ(nlohmann::json::parse(lines[0])["backends"], "CPU");
    EXPECT_EQ(nlohmann::json::parse(lines[1])["samples_ns"].size(), 8U);
}

TEST(BenchRows, Sql) {
    const std::string text = bench_sql(sample());
    EXPECT_NE(text.find("CREATE TABLE IF NOT EXISTS llama_bench (\n  build_commit TEXT,\n  build_number INTEGER,\n"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("  stddev_ts REAL,\n  mode TEXT,\n  ratio REAL,\n  ratio_low REAL,\n  ratio_high REAL\n);\n"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("'somebody''s \"model\".gguf'"), std::string::npos) << text;
    EXPECT_NE(text.find("'bare', NULL, NULL, NULL);"), std::string::npos) << text;
}

TEST(BenchReport, Json) {
    const auto json = bench_json(sample());
    EXPECT_EQ(json["kind"], "cascade-bench");
    EXPECT_EQ(json["complete"], true);
    const auto & test = json["tests"][0];
    EXPECT_EQ(test["n_prompt"], 100);
    EXPECT_EQ(test["n_depth"], 4096);
    EXPECT_NEAR(test["bare_ts"].get<double>(), 100 / 2.07, 0.01);
    EXPECT_NEAR(test["ours_ts"].get<double>(), 100 / 1.035, 0.01);
    EXPECT_NEAR(test["ratio"].get<double>(), 2.0, 1e-9);
    EXPECT_EQ(test["ratio_interval"].size(), 2U);
    EXPECT_DOUBLE_EQ(test["interval_level"].get<double>(), 1.0 - (2.0 / 256.0));
    EXPECT_TRUE(test["warning"].is_null()) << test["warning"];
    EXPECT_EQ(test["slower_setting"]["flash_attn"], 0);
    EXPECT_DOUBLE_EQ(test["microseconds_per_token"]["ours"].get<double>(), 1000.0); // 0.8 s, 8 rounds of 100 tokens
    EXPECT_EQ(test["bare"]["backends"], "CPU");
    for (const std::string & column : llama_bench_columns) {
        EXPECT_TRUE(test.contains(column)) << column;
        EXPECT_TRUE(test["bare"].contains(column)) << column;
    }
}

TEST(BenchReport, Table) {
    const std::string text = bench_table(sample());
    for (const char * words :
         { "| llama 1B | 3.00 GiB | 1.50 B | Cascade exact |", "pp100 @ d4096", "99.22 % interval", "2.000 .. 2.000",
           "-fa 0: x 0.800", "build: abc (7)", "| reading ", "| 100.0 ", "| 2.00 KiB " }) {
        EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
    }
    EXPECT_EQ(text.find("warning"), std::string::npos) << text;
}

TEST(BenchReport, WarnsWhereNoiseExceedsTheDifference) {
    BenchTest test = sample().tests[0];
    test.ours = test.control;
    EXPECT_NE(test.warning(0.99).find("can't be told from 1"), std::string::npos);
    for (size_t i = 0; i < test.ours.size(); i++) {
        test.ours[i] = test.bare[i] * 0.98;
        test.control[i] = test.bare[i] * 0.97;
    }
    EXPECT_NE(test.warning(0.99).find("bare against bare"), std::string::npos) << test.warning(0.99);
    EXPECT_NE(test.warning(0.999).find("8 rounds can't give more than 99.22 %"), std::string::npos);
    test.ours.resize(1);
    EXPECT_NE(test.warning(0.99).find("-r"), std::string::npos);
    EXPECT_EQ(sample().tests[0].warning(0.99), "");
}

TEST(BenchReport, NothingMeasuredStillPrints) {
    Bench bench = sample();
    bench.tests.clear();
    EXPECT_EQ(bench_json(bench)["tests"].size(), 0U);
    EXPECT_EQ(lines_of(bench_csv(bench)).size(), 1U);
    EXPECT_EQ(bench_jsonl(bench), "");
    bench.tests = { BenchTest() };
    bench.tests[0].n_gen = 1;
    EXPECT_TRUE(bench_json(bench)["tests"][0]["ratio"].is_null());
}

} // namespace
} // namespace cascade::report
