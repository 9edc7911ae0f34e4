// Inputs of linear maps as they are streamed, on tiny models of many architectures; and what is kept of a calibration.
#include "cli/linear_inputs.h"

#include "cli/engine.h"
#include "cli/kept_calibration.h"
#include "cli/model_weights.h"
#include "support/tiny_models.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <stdexcept>
#include <unistd.h>

namespace cascade::test {
void PrintTo(const TinyModel & model, std::ostream * out) { *out << model.name; }
} // namespace cascade::test

namespace cascade::cli {
namespace {

using test::TinyModel;
using Tokens = std::vector<llama_token>;
using Rows = std::map<size_t, std::vector<float>>; // by input

constexpr int64_t window_size = 21;

class LinearInputsTest : public testing::TestWithParam<TinyModel> {
  protected:
    void SetUp() override {
        start_engine();
        test::write_tiny_model(GetParam(), path);
        model = load_model(path, true);
        for (int64_t i = 0; i < window_size; i++) {
            tokens.push_back(static_cast<llama_token>((7 + (i * i * 5) + i) % GetParam().vocab));
        }
    }
    void TearDown() override { std::filesystem::remove(path); }

    static void add(Rows & to, size_t input, const subspace::MatrixView & rows) {
        for (int64_t t = 0; t < rows.rows; t++) {
            to[input].insert(to[input].end(), rows.row(t), rows.row(t) + rows.columns);
        }
    }
    Rows run(LinearInputs & stream, const std::vector<bool> & wanted) const {
        Rows found;
        EXPECT_TRUE(stream.run(tokens, 0, wanted, [&](size_t input, const auto & rows) { add(found, input, rows); }));
        return found;
    }

    std::string path = testing::TempDir() + "linear_inputs_test_" + std::to_string(::getpid()) + ".gguf";
    llama_model_ptr model;
    Tokens tokens;
};

TEST_P(LinearInputsTest, AreThereForEveryTokenAndFitTheirWeights) {
    if (!GetParam().causal) {
        EXPECT_THROW(LinearInputs(model.get(), window_size, 2), std::runtime_error);
        return;
    }
    LinearInputs stream(model.get(), window_size, 2);
    ModelWeights weights(model.get(), path);
    std::set<std::string> seen;
    for (const SharedInput & input : stream.all()) {
        EXPECT_EQ(input.name + ".weight", input.weights.front());
        EXPECT_EQ(input.name, "blk." + std::to_string(input.layer) + "." + input.kind);
        for (const std::string & weight : input.weights) {
            EXPECT_EQ(weights.shape(weight).columns, input.width) << weight;
            EXPECT_TRUE(seen.insert(weight).second) << weight;
            EXPECT_EQ(weight.find("_exps"), std::string::npos) << weight;
        }
    }
    const std::vector<bool> all(stream.all().size(), true);
    const Rows found = run(stream, all);
    for (size_t i = 0; i < stream.all().size(); i++) {
        const std::vector<float> & rows = found.at(i);
        EXPECT_EQ(static_cast<int64_t>(rows.size()), window_size * stream.all()[i].width) << stream.all()[i].name;
        EXPECT_TRUE(std::all_of(rows.begin(), rows.end(), [](float value) { return std::isfinite(value); }));
        EXPECT_TRUE(std::any_of(rows.begin(), rows.end(), [](float value) { return value != 0.0F; }));
    }
    EXPECT_GE(stream.run_bare(tokens, 0), 0.0);
    EXPECT_EQ(run(stream, all), found) << "the same again";
}

TEST_P(LinearInputsTest, AreTheSameWhateverElseIsWanted) {
    if (!GetParam().causal) {
        return;
    }
    LinearInputs stream(model.get(), window_size, 2);
    const Rows all = run(stream, std::vector<bool>(stream.all().size(), true));
    for (size_t i = 0; i < stream.all().size(); i++) {
        std::vector<bool> one(stream.all().size(), false);
        one[i] = true;
        const Rows found = run(stream, one);
        ASSERT_EQ(found.size(), 1U);
        EXPECT_EQ(found.at(i), all.at(i)) << stream.all()[i].name;
    }
}

INSTANTIATE_TEST_SUITE_P(All, LinearInputsTest, testing::ValuesIn(test::tiny_models()), [](const auto & of) {
    std::string name = of.param.name;
    std::replace_if(name.begin(), name.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
    return name;
});

TEST(LinearInputs, OfALlamaAreFourALayer) {
    start_engine();
    const auto & models = test::tiny_models();
    const auto llama =
        std::find_if(models.begin(), models.end(), [](const TinyModel & model) { return model.name == "llama"; });
    ASSERT_NE(llama, models.end());
    const std::string path = testing::TempDir() + "linear_inputs_llama_" + std::to_string(::getpid()) + ".gguf";
    test::write_tiny_model(*llama, path);
    const llama_model_ptr model = load_model(path, true);
    const LinearInputs stream(model.get(), window_size, 1);
    std::filesystem::remove(path);
    ASSERT_EQ(stream.all().size(), 4U * static_cast<size_t>(llama->layers));
    EXPECT_EQ(stream.all()[0].name, "blk.0.attn_q");
    EXPECT_EQ(stream.all()[0].weights.size(), 3U);
    EXPECT_EQ(stream.all()[1].kind, "attn_output");
    EXPECT_EQ(stream.all()[2].weights.size(), 2U);
    EXPECT_EQ(stream.all()[3].kind, "ffn_down");
    EXPECT_EQ(stream.all()[3].width, llama->ff);
}

class KeptCalibrationTest : public testing::Test {
  protected:
    void SetUp() override { ::setenv("XDG_CACHE_HOME", cache.c_str(), 1); }
    void TearDown() override { std::filesystem::remove_all(cache); }
    std::string cache = testing::TempDir() + "kept_calibration_" + std::to_string(::getpid());
};

TEST_F(KeptCalibrationTest, ComesBackToTheSameSettingsAndToNoOthers) {
    std::vector<subspace::SecondMoments> moments;
    moments.emplace_back(30);
    const std::vector<float> values(moments.front().raw().size(), 2.5F);
    moments.front().restore(values, 7);
    KeptBasis basis;
    basis.basis.width = 3;
    basis.basis.trace = 5.0;
    basis.basis.values = { 3.0, 1.0 };
    basis.basis.vectors = { 1.0F, 0.0F, 0.0F };
    basis.inherited = { 0.25, 9 };
    basis.guess = { 0.5F, 0.25F, 0.0F };
    basis.loss = { 0.125, 0.75 };
    {
        KeptCalibration kept("settings", "k 1", false);
        kept.save({ 1, 4, 0.5, 0.25 }, moments);
        kept.save(3, basis);
    }
    KeptCalibration again("settings", "k 1", true);
    std::vector<subspace::SecondMoments> back;
    back.emplace_back(30);
    EXPECT_FALSE(again.load(0, back));
    const auto so_far = again.load(1, back);
    ASSERT_TRUE(so_far);
    EXPECT_EQ(so_far->passes, 4);
    EXPECT_EQ(back.front().tokens(), 7);
    EXPECT_TRUE(std::equal(values.begin(), values.end(), back.front().raw().begin()));
    ASSERT_TRUE(again.has(3));
    EXPECT_EQ(again.load(3)->basis.vectors, basis.basis.vectors);
    EXPECT_EQ(again.load(3)->inherited.updates, 9);
    EXPECT_FALSE(again.has(2));
    EXPECT_EQ(again.load(3)->guess, basis.guess);
    EXPECT_EQ(again.load(3)->loss.gain, 0.75);
    EXPECT_FALSE(KeptCalibration("others", "k 1", true).has(3));
    KeptCalibration another("settings", "k 2", true); // the same moments, other bases
    EXPECT_FALSE(another.has(3));
    EXPECT_TRUE(another.load(1, back));
    again.forget_bases();
    EXPECT_FALSE(again.has(3));
    EXPECT_TRUE(again.load(1, back));
    EXPECT_FALSE(KeptCalibration("settings", "k 1", false).load(1, back)) << "forgotten without --resume";
}

TEST_F(KeptCalibrationTest, WhatIsCutShortIsNotTaken) {
    std::vector<subspace::SecondMoments> moments;
    moments.emplace_back(30);
    KeptCalibration kept("settings", "k 1", false);
    kept.save({ 0, 4, 0.5, 0.25 }, moments);
    for (const auto & entry : std::filesystem::recursive_directory_iterator(cache)) {
        if (entry.path().filename() == "moments") {
            std::filesystem::resize_file(entry.path(), entry.file_size() - 4);
        }
    }
    EXPECT_THROW(kept.load(0, moments), std::runtime_error);
}

} // namespace
} // namespace cascade::cli
