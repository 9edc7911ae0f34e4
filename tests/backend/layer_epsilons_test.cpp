#include "backend/layer_epsilons.h"
#include "graph/weight_identity.h"
#include "sidecar/samples.h"

#include "ggml-cpp.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

namespace cascade::backend {
namespace {

// Two layers with a norm's weight each, and a sidecar that knows them.
class Epsilons : public testing::Test {
  protected:
    Epsilons() {
        settings.mode = Mode::near;
        settings.sidecar = testing::TempDir() + "layer_epsilons_" + std::to_string(::getpid()) + ".gguf";
        file = sidecar::test::sample();
        file.fingerprints.clear();
        for (int i = 0; i < 2; i++) {
            layers[i].index = i;
            layers[i].norm_weight = weight("blk." + std::to_string(i) + ".attn_norm.weight", 0.5F);
            file.fingerprints.push_back(graph::identity_of(layers[i].norm_weight).value());
        }
        file.near.epsilons = { 0.01F, 0.0F };
        file.balanced.epsilons = { 0.1F, 0.2F };
        EXPECT_TRUE(sidecar::save(file, settings.sidecar));
    }
    ~Epsilons() override { std::filesystem::remove(settings.sidecar); }

    ggml_tensor * weight(const std::string & name, float value) {
        ggml_tensor * tensor = ggml_new_tensor_1d(context.get(), GGML_TYPE_F32, 33);
        ggml_set_name(tensor, name.c_str());
        std::fill_n(static_cast<float *>(tensor->data), 33, value);
        return tensor;
    }

    ggml_context_ptr context{ ggml_init({ 1 << 16, nullptr, false }) };
    Settings settings;
    graph::Layer layers[2];
    sidecar::Sidecar file;
};

TEST_F(Epsilons, AreTheSidecarsForItsLayers) {
    LayerEpsilons near(settings);
    EXPECT_EQ(near.of(layers[0]), 0.01F);
    EXPECT_EQ(near.of(layers[1]), 0.0F);
    EXPECT_EQ(near.matched(), 2);
    EXPECT_EQ(near.unmatched(), 0);
    EXPECT_TRUE(near.refused().empty());
    settings.mode = Mode::balanced;
    EXPECT_EQ(LayerEpsilons(settings).of(layers[1]), 0.2F);
}

TEST_F(Epsilons, AreTheModesForAModeThatWasNotTuned) {
    file.near = {};
    ASSERT_TRUE(sidecar::save(file, settings.sidecar));
    LayerEpsilons near(settings);
    EXPECT_EQ(near.of(layers[0]), settings.gate());
    EXPECT_EQ(near.matched(), 1);
}

TEST_F(Epsilons, AreTheVariablesWhereItIsSet) {
    settings.epsilon = 0.3F;
    LayerEpsilons given(settings);
    EXPECT_EQ(given.of(layers[0]), 0.3F);
    EXPECT_EQ(given.matched(), 0);
    EXPECT_FALSE(given.refused().empty());
}

TEST_F(Epsilons, AreTheModesForLayersOfAnotherModel) {
    graph::Layer other = layers[0];
    const auto expect_unknown = [&](const char * what) {
        testing::internal::CaptureStderr();
        LayerEpsilons near(settings);
        EXPECT_EQ(near.of(other), settings.gate()) << what;
        EXPECT_EQ(near.unmatched(), 1) << what;
        return testing::internal::GetCapturedStderr();
    };
    other.norm_weight = weight("blk.0.attn_norm.weight", 0.25F);
    const std::string said = expect_unknown("other bytes");
    EXPECT_NE(said.find("the sidecar is for another model: layer 0"), std::string::npos) << said;
    EXPECT_TRUE(expect_unknown("said once").empty());
    other.norm_weight = weight("blk.0.ffn_norm.weight", 0.5F);
    expect_unknown("another name");
    other.norm_weight = nullptr;
    expect_unknown("no weight");
    other = layers[0];
    other.index = 1;
    expect_unknown("another place");
    other.index = 2;
    expect_unknown("beyond the last");
    other.index = -1;
    expect_unknown("no layer");
}

TEST_F(Epsilons, AreTheModesWhereTheFileIsDamaged) {
    std::ofstream(settings.sidecar) << "GGUF and something else";
    LayerEpsilons near(settings);
    EXPECT_EQ(near.of(layers[0]), settings.gate());
    EXPECT_FALSE(near.refused().empty());
}

TEST_F(Epsilons, NoFileIsReadInOtherModes) {
    std::ofstream(settings.sidecar) << "damaged";
    for (const Mode mode : { Mode::exact, Mode::fast, Mode::reference }) {
        settings.mode = mode;
        EXPECT_TRUE(LayerEpsilons(settings).refused().empty());
    }
}

TEST_F(Epsilons, IdentityIsOfReadableVectorsOnly) {
    ggml_tensor * good = weight("blk.0.attn_norm.weight", 1.0F);
    EXPECT_TRUE(graph::identity_of(good));
    static_cast<float *>(good->data)[32] = 2.0F; // the last, odd one counts
    EXPECT_NE(graph::identity_of(good), graph::identity_of(weight("blk.0.attn_norm.weight", 1.0F)));
    good->data = nullptr;
    EXPECT_FALSE(graph::identity_of(good));
    EXPECT_FALSE(graph::identity_of(ggml_new_tensor_1d(context.get(), GGML_TYPE_F16, 32)));
    EXPECT_FALSE(graph::identity_of(ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, 8, 2)));
    EXPECT_FALSE(graph::identity_of(nullptr));
}

} // namespace
} // namespace cascade::backend
