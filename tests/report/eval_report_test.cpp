// An evaluation as scripts, spreadsheets and readers get it, and as an interrupted one is kept.
#include "report/eval_json.h"
#include "report/eval_table.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <tuple>

namespace cascade::report {
namespace {

using namespace evaluate;
using nlohmann::json;

constexpr size_t scored = 40;

MethodWindow made_method(const std::string & label, float scale) {
    MethodWindow method;
    method.label = label;
    for (size_t i = 0; i < scored; i++) {
        method.scores.kl.push_back(scale / (3.0F + static_cast<float>(i % 7)));
        method.scores.same_top.push_back(i % 5 != 0 ? 1 : 0);
        method.scores.nll.push_back(2.0F + (scale / 7.0F));
    }
    method.reads = { 1000.0 / 3.0, 100.0, 250.0, 1000.0 };
    method.layers = { { 0.0, 0.0, true }, { 1.0 / 3.0, 7.0, false } };
    method.seconds = 10.0 / 3.0;
    return method;
}

Window made_window(int64_t index) {
    Window window;
    window.index = index;
    window.dense_nll.assign(scored, 2.0F);
    window.dense_seconds = 5.0 / 3.0;
    window.methods = { made_method("joint:0.1", 0.01F), made_method("streaming:0.25,\"odd\"", 0.1F),
                       made_method(noise_label, 0.001F) };
    window.methods[2].reads = {};
    window.methods[2].layers.clear();
    return window;
}

Evaluation made_evaluation() {
    Evaluation evaluation;
    evaluation.windows = { made_window(0), made_window(1) };
    for (const MethodWindow & method : evaluation.windows[0].methods) {
        evaluation.labels.push_back(method.label);
    }
    for (int64_t i = 0; i < 4; i++) {
        evaluation.answers.push_back(
            { "passkey", 1024, 0.25 * static_cast<double>(i), i, 5, true, 5, { 1, i == 0, 1 }, { 5, 2, 5 } });
        evaluation.answers.push_back({ "hard", 1024, 0.5, i, 5, i == 0, 2, { 1, 0, 1 }, { 5, 2, 5 } });
    }
    return evaluation;
}

EvalInfo made_info() {
    EvalInfo info;
    info.model = "some.gguf";
    info.architecture = "llama";
    info.weights = "Q4_1";
    info.text = "text.txt";
    info.version = "1";
    info.date = "2020-01-01";
    info.machine = "machine";
    info.isa = "avx2";
    info.command = "cascade eval";
    info.cache_k = "f16";
    info.cache_v = "q8_0";
    info.tokens = 80;
    info.chunk = 16;
    info.window = 8;
    info.scored_from = 40;
    info.seed = std::numeric_limits<uint64_t>::max();
    info.windows = 3;
    info.complete = false;
    return info;
}

std::vector<std::string> lines_of(const std::string & text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
        lines.push_back(line);
    }
    return lines;
}

TEST(EvalJson, SaysWhatWasRun) {
    const json all = eval_json(made_info(), made_evaluation());
    EXPECT_EQ(all.at("kind"), "evaluation");
    const json expected = { { "model", "some.gguf" },
                            { "architecture", "llama" },
                            { "weights", "Q4_1" },
                            { "text", "text.txt" },
                            { "cascade", "1" },
                            { "date", "2020-01-01" },
                            { "machine", "machine" },
                            { "isa", "avx2" },
                            { "command", "cascade eval" },
                            { "cache_k", "f16" },
                            { "cache_v", "q8_0" },
                            { "tokens", 80 },
                            { "chunk", 16 },
                            { "window", 8 },
                            { "scored_from", 40 },
                            { "windows", 3 },
                            { "windows_done", 2 },
                            { "complete", false },
                            { "leaderboard", false },
                            { "tokens_scored", 80 } };
    for (const auto & [name, value] : expected.items()) {
        EXPECT_EQ(all.at(name), value) << name;
    }
    EXPECT_EQ(all.at("seed"), std::numeric_limits<uint64_t>::max());
    EXPECT_NEAR(all.at("dense").at("ppl").get<double>(), std::exp(2.0), 1e-4);
    EXPECT_EQ(all.at("dense").at("ppl_interval").size(), 2U);
}

TEST(EvalJson, HasEveryFigureOfEachMethod) {
    const json all = eval_json(made_info(), made_evaluation());
    ASSERT_EQ(all.at("methods").size(), 3U);
    const json & joint = all.at("methods")[0];
    EXPECT_EQ(joint.at("name"), "joint:0.1");
    for (const char * name : { "kl", "kl_median", "kl_99", "kl_999", "top1", "ppl_ratio", "share", "bytes_share",
                               "cost", "retrieval", "retrieval_dense", "retrieval_tokens" }) {
        EXPECT_TRUE(joint.at(name).is_number()) << name;
    }
    for (const char * name : { "kl_interval", "top1_interval", "ppl_ratio_interval", "retrieval_interval" }) {
        ASSERT_EQ(joint.at(name).size(), 2U) << name;
        EXPECT_LE(joint.at(name)[0], joint.at(name)[1]) << name;
    }
    EXPECT_DOUBLE_EQ(joint.at("share").get<double>(), 0.3);
    EXPECT_DOUBLE_EQ(joint.at("bytes_share").get<double>(), 0.25);
    EXPECT_DOUBLE_EQ(joint.at("top1").get<double>(), 0.8);
    EXPECT_DOUBLE_EQ(joint.at("cost").get<double>(), 2.0);
    EXPECT_TRUE(joint.at("layer_error")[0].is_null());
    EXPECT_NEAR(joint.at("layer_error")[1].get<double>(), std::sqrt(1.0 / 21.0), 1e-6);
    EXPECT_EQ(joint.at("layers_left_alone"), 1);
    EXPECT_EQ(joint.at("ahead_of"), json({ "streaming:0.25,\"odd\"" }));
    EXPECT_EQ(joint.at("frontier"), true);
    EXPECT_EQ(joint.at("frontier_bytes"), true);
}

TEST(EvalJson, NoiseIsAMethodThatReadsEverything) {
    const json all = eval_json(made_info(), made_evaluation());
    const json & noise = all.at("methods")[2];
    EXPECT_TRUE(noise.at("share").is_null());
    EXPECT_EQ(noise.at("frontier"), false);
    EXPECT_EQ(all.at("noise").at("kl"), noise.at("kl"));
    EXPECT_EQ(all.at("noise").at("top1"), noise.at("top1"));
    Evaluation without = made_evaluation();
    without.labels.pop_back();
    without.answers.clear();
    EXPECT_TRUE(eval_json(made_info(), without).at("noise").is_null());
    EXPECT_TRUE(eval_json(made_info(), without).at("retrieval").is_null());
    EXPECT_TRUE(eval_json(made_info(), without).at("methods")[0].at("retrieval").is_null());
}

TEST(EvalJson, TasksOutOfReachAreMarked) {
    const json retrieval = eval_json(made_info(), made_evaluation()).at("retrieval");
    ASSERT_EQ(retrieval.at("tasks").size(), 2U);
    const json & passkey = retrieval.at("tasks")[0];
    EXPECT_EQ(passkey.at("task"), "passkey");
    EXPECT_EQ(passkey.at("length"), 1024);
    EXPECT_EQ(passkey.at("questions"), 4);
    EXPECT_EQ(passkey.at("out_of_reach"), false);
    EXPECT_EQ(passkey.at("methods").at("streaming:0.25,\"odd\""), 0.25);
    EXPECT_EQ(retrieval.at("tasks")[1].at("out_of_reach"), true);
    EXPECT_EQ(retrieval.at("by_depth").size(), 4U);
}

TEST(EvalJson, WhatWasNotMeasuredIsNull) {
    const json nothing = eval_json(made_info(), { { "a" }, {}, {} });
    EXPECT_TRUE(nothing.at("dense").at("ppl").is_null());
    EXPECT_TRUE(nothing.at("methods")[0].at("kl").is_null());
    EXPECT_TRUE(nothing.at("methods")[0].at("kl_interval").is_null());
    EXPECT_EQ(nothing.dump().find("nan"), std::string::npos);
}

bool same_bits(const std::vector<float> & a, const std::vector<float> & b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
        return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y) || (std::isnan(x) && std::isnan(y));
    });
}

TEST(EvalWindowJson, ComesBackToTheBit) {
    Window window = made_window(3);
    Scores & scores = window.methods[0].scores;
    uint32_t bits = 1;
    for (size_t i = 0; i < scored; i++) { // all kinds of floats
        bits = (bits * 1664525U) + 1013904223U;
        scores.nll[i] = std::bit_cast<float>(bits);
    }
    scores.kl[0] = std::numeric_limits<float>::infinity();
    scores.kl[1] = -0.0F;
    scores.kl[2] = std::numeric_limits<float>::denorm_min();
    scores.kl[3] = std::numeric_limits<float>::max();
    scores.kl[4] = std::nanf("");
    window.methods[0].reads.past = std::numeric_limits<double>::denorm_min();
    const std::string line = eval_window_json(window).dump();
    EXPECT_EQ(line.find('\n'), std::string::npos) << "one line in a file";
    const Window back = eval_window_from(json::parse(line));
    EXPECT_EQ(back.index, 3);
    EXPECT_EQ(back.dense_seconds, window.dense_seconds);
    EXPECT_TRUE(same_bits(back.dense_nll, window.dense_nll));
    ASSERT_EQ(back.methods.size(), window.methods.size());
    for (size_t m = 0; m < back.methods.size(); m++) {
        const auto & [ours, theirs] = std::tie(back.methods[m], window.methods[m]);
        EXPECT_EQ(ours.label, theirs.label);
        EXPECT_TRUE(same_bits(ours.scores.kl, theirs.scores.kl));
        EXPECT_TRUE(same_bits(ours.scores.nll, theirs.scores.nll));
        EXPECT_EQ(ours.scores.same_top, theirs.scores.same_top);
        EXPECT_EQ(ours.reads.past, theirs.reads.past);
        EXPECT_EQ(ours.reads.read, theirs.reads.read);
        EXPECT_EQ(ours.reads.bytes, theirs.reads.bytes);
        EXPECT_EQ(ours.reads.dense_bytes, theirs.reads.dense_bytes);
        EXPECT_EQ(ours.seconds, theirs.seconds);
        ASSERT_EQ(ours.layers.size(), theirs.layers.size());
        for (size_t layer = 0; layer < ours.layers.size(); layer++) {
            EXPECT_EQ(ours.layers[layer].difference, theirs.layers[layer].difference);
            EXPECT_EQ(ours.layers[layer].norm, theirs.layers[layer].norm);
            EXPECT_EQ(ours.layers[layer].left_alone, theirs.layers[layer].left_alone);
        }
    }
}

// Whatever stands in a file, a window is right or refused.
TEST(EvalWindowJson, RefusesWhatIsNoWindow) {
    const json good = eval_window_json(made_window(0));
    for (const char * text : { "null", "[]", "{}", "7", R"("text")", R"({"index": 1})" }) {
        EXPECT_ANY_THROW(eval_window_from(json::parse(text))) << text;
    }
    const std::vector<json> values = { "text", true, json::object(), json::array(), { "a" }, 1e300, nullptr };
    const auto refuses = [&](const std::string & where, const json & value) {
        json wrong = good;
        wrong[json::json_pointer(where)] = value;
        EXPECT_ANY_THROW(eval_window_from(wrong)) << where << " " << value;
    };
    for (const char * where : { "/index", "/dense_nll", "/methods", "/methods/0", "/methods/0/label", "/methods/0/kl",
                                "/methods/0/same_top", "/methods/0/nll", "/methods/0/reads", "/methods/0/layers/0" }) {
        for (const json & value : values) {
            const bool may_be = (value == "text" && std::string(where).ends_with("label")) ||
                                (value == json::array() && std::string(where) == "/methods");
            if (!may_be) {
                refuses(where, value);
            }
        }
    }
    for (const json & value : { json("text"), json(true), json(1e300), json::array() }) {
        refuses("/methods/0/kl/3", value);
    }
    refuses("/index", 1.5);
    refuses("/methods/0/layers/0/2", 1);
    refuses("/methods/0/same_top", std::string(scored, '2'));
    refuses("/methods/0/same_top", std::string(scored - 1, '1'));
    refuses("/methods/1/nll", json(std::vector<float>(scored + 1, 1.0F)));
    refuses("/dense_nll", json(std::vector<float>(scored - 1, 1.0F)));
}

TEST(AnswerJson, ComesBackOrIsRefused) {
    const Answer answer{ "pass\"key", 1536, 1.0 / 3.0, 4, 5, true, 5, { 1, 0 }, { 5, 3 } };
    const json good = json::parse(answer_json(answer).dump());
    const Answer back = answer_from(good);
    EXPECT_EQ(back.task, answer.task);
    EXPECT_EQ(back.length, answer.length);
    EXPECT_EQ(back.depth, answer.depth);
    EXPECT_EQ(back.index, answer.index);
    EXPECT_EQ(back.tokens, answer.tokens);
    EXPECT_EQ(back.dense_right, answer.dense_right);
    EXPECT_EQ(back.dense_tokens_right, answer.dense_tokens_right);
    EXPECT_EQ(back.right, answer.right);
    EXPECT_EQ(back.tokens_right, answer.tokens_right);
    for (const auto & [name, value] : good.items()) {
        json without = good;
        without.erase(name);
        EXPECT_ANY_THROW(answer_from(without)) << name;
        json wrong = good;
        wrong[name] = json::object();
        EXPECT_ANY_THROW(answer_from(wrong)) << name;
    }
    json another = good;
    another["right"] = "101";
    EXPECT_ANY_THROW(answer_from(another));
    json large = good;
    large["tokens"] = int64_t{ 1 } << 40;
    EXPECT_ANY_THROW(answer_from(large));
}

TEST(EvalTable, HasARowForEachMethodAndSaysHowToReadIt) {
    const std::string text = eval_table(eval_json(made_info(), made_evaluation()));
    EXPECT_NE(text.find("some.gguf (llama, Q4_1) on text.txt, T = 80"), std::string::npos);
    const auto lines = lines_of(text);
    EXPECT_EQ(std::count_if(lines.begin(), lines.end(), [](const auto & line) { return line.starts_with("| "); }), 4);
    for (const char * words : { "30.0 %", "25.0 %", "±", "Dense perplexity 7.389", "Noise", "2 of 3 windows",
                                "hard at 1024 tokens (25.0 %)", "1 of 2 layers", "Q4_K_M 0.031" }) {
        EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
    }
    EXPECT_EQ(text.find("nan"), std::string::npos);
}

TEST(EvalTable, NothingDoneIsNothingSaid) {
    const json nothing = eval_json(made_info(), {});
    EXPECT_EQ(lines_of(eval_csv(nothing)).size(), 1U);
    EXPECT_NE(eval_table(nothing).find("Dense perplexity -"), std::string::npos);
}

TEST(EvalTable, SaysWhichMethodsBroke) {
    Evaluation evaluation = made_evaluation();
    evaluation.windows[0].methods[0].scores.kl[0] = std::nanf("");
    EXPECT_NE(eval_table(eval_json(made_info(), evaluation)).find("so not judged: joint:0.1."), std::string::npos);
}

TEST(EvalCsv, HasALineForEachMethodAndEqualColumns) {
    const auto lines = lines_of(eval_csv(eval_json(made_info(), made_evaluation())));
    ASSERT_EQ(lines.size(), 4U);
    EXPECT_TRUE(lines[0].starts_with("method,share,bytes_share,kl,kl_low,kl_high,kl_median,"));
    EXPECT_TRUE(lines[1].starts_with("joint:0.1,0.3,0.25,")) << lines[1];
    EXPECT_TRUE(lines[2].starts_with("\"streaming:0.25,\"\"odd\"\"\",")) << lines[2];
    const auto columns = std::count(lines[0].begin(), lines[0].end(), ',');
    for (const size_t line : { 1, 3 }) {
        EXPECT_EQ(std::count(lines[line].begin(), lines[line].end(), ','), columns) << lines[line];
    }
}

} // namespace
} // namespace cascade::report
