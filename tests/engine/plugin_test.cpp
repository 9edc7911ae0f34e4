// Tiny models of every architecture through the real plugin, in one process: bare contexts first, then the plugin is
// loaded and the same tokens are computed again. The mode comes from GGML_CASCADE, as for any llama.cpp program.
//
// exact, and every injected fault: the same bytes. reference: the same up to rounding. off: the plugin claims nothing.
#include "support/compare.h"
#include "support/tiny_models.h"

#include "ggml-backend.h"
#include "llama-cpp.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <unistd.h>

namespace {

using cascade::test::TinyModel;

struct Variant {
    TinyModel model;
    bool flash = true;
    ggml_type cache = GGML_TYPE_F16;
    bool observed = false; // by an eval callback, which has the graph computed in parts

    std::string name() const {
        return model.name + (observed ? " observed" : "") + (flash ? " flash " : " softmax ") + ggml_type_name(cache) +
               " head size " + std::to_string(model.head_size);
    }
};

std::vector<Variant> variants() {
    std::vector<Variant> all;
    for (const TinyModel & model : cascade::test::tiny_models()) {
        for (const bool flash : { true, false }) {
            all.push_back({ model, flash, GGML_TYPE_F16 });
        }
        all.push_back({ model, true, GGML_TYPE_Q8_0 });
    }
    TinyModel rotated = cascade::test::tiny_models().front(); // head size 64 with q8_0: the engine rotates keys
    rotated.heads = 2, rotated.kv_heads = 1, rotated.head_size = 64;
    all.push_back({ rotated, true, GGML_TYPE_Q8_0 });
    all.push_back({ rotated, true, GGML_TYPE_F32 });
    for (const bool flash : { true, false }) {
        all.push_back({ cascade::test::tiny_models().front(), flash, GGML_TYPE_F16, true });
    }
    return all;
}

// Cuts the graph before attention, and in the softmax form in the middle of it.
bool observe(ggml_tensor * tensor, bool ask, void *) {
    const std::string_view name = tensor->name;
    return !ask || name.starts_with("cache_v") || name.starts_with("kq_soft_max");
}

llama_context_params context_params(const Variant & variant) {
    llama_context_params params = llama_context_default_params();
    params.n_ctx = 256;
    params.n_batch = 64;
    params.n_seq_max = 2;
    params.n_threads = params.n_threads_batch = 2;
    params.flash_attn_type = variant.flash ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
    params.type_k = variant.cache;
    params.type_v = variant.flash ? variant.cache : GGML_TYPE_F16;
    params.embeddings = !variant.model.causal;
    params.cb_eval = variant.observed ? observe : nullptr;
    params.pooling_type = LLAMA_POOLING_TYPE_NONE;
    return params;
}

void append(std::vector<float> & all, llama_context * context, const TinyModel & model, int row) {
    const float * values = model.causal ? llama_get_logits_ith(context, row) : llama_get_embeddings_ith(context, row);
    const int n = model.causal ? model.vocab : model.embd;
    ASSERT_NE(values, nullptr);
    all.insert(all.end(), values, values + n);
}

// A batch of two sequences, then some single tokens: both kinds of graph, and the second kind reused.
std::vector<float> outputs(const Variant & variant) {
    llama_model_params model_params = llama_model_default_params();
    const std::string path = testing::TempDir() + "plugin_test_" + std::to_string(::getpid()) + ".gguf";
    cascade::test::write_tiny_model(variant.model, path);
    const llama_model_ptr model(llama_model_load_from_file(path.c_str(), model_params));
    std::remove(path.c_str());
    EXPECT_NE(model, nullptr);
    const llama_context_ptr context(llama_init_from_model(model.get(), context_params(variant)));
    EXPECT_NE(context, nullptr);

    std::vector<float> all;
    llama_batch batch = llama_batch_init(64, 0, 1);
    const auto add = [&](int position, int sequence, int token) {
        const int i = batch.n_tokens++;
        batch.token[i] = token % variant.model.vocab;
        batch.pos[i] = position;
        batch.n_seq_id[i] = 1;
        batch.seq_id[i][0] = sequence;
        batch.logits[i] = 1;
    };
    for (int i = 0; i < 24; i++) {
        add(i, 0, 7 * i + 3);
        add(i, 1, 5 * i + 1);
    }
    EXPECT_EQ(llama_decode(context.get(), batch), 0);
    for (int i = 0; i < batch.n_tokens; i++) {
        append(all, context.get(), variant.model, i);
    }
    for (int step = 0; step < 4 && variant.model.causal; step++) {
        batch.n_tokens = 0;
        add(24 + step, 0, 11 * step + 2);
        EXPECT_EQ(llama_decode(context.get(), batch), 0);
        append(all, context.get(), variant.model, 0);
    }
    llama_batch_free(batch);
    return all;
}

std::string setting(const char * name) {
    const char * value = std::getenv(name);
    return value != nullptr ? value : "";
}

TEST(Plugin, TinyModelsComeOutAsTheModePromises) {
    llama_log_set(
        [](ggml_log_level level, const char * text, void *) {
            if (level == GGML_LOG_LEVEL_ERROR) {
                std::fputs(text, stderr);
            }
        },
        nullptr);
    ggml_backend_load_all_from_path(CASCADE_BIN);
    llama_backend_init();
    std::vector<std::vector<float>> bare;
    for (const Variant & variant : variants()) {
        bare.push_back(outputs(variant));
    }

    ASSERT_NE(ggml_backend_load(CASCADE_PLUGIN), nullptr);
    ggml_backend_dev_t device = ggml_backend_dev_by_name("Cascade");
    ASSERT_EQ(device == nullptr, setting("GGML_CASCADE") == "off");
    EXPECT_TRUE(device == nullptr || ggml_backend_dev_type(device) == GGML_BACKEND_DEVICE_TYPE_ACCEL);
    const std::string mode = setting("GGML_CASCADE");
    const bool rounding = (mode == "reference" || mode == "fast") && setting("GGML_CASCADE_FAULT").empty();
    size_t i = 0;
    int changed = 0;
    for (const Variant & variant : variants()) {
        const std::vector<float> & expected = bare[i++];
        const std::vector<float> got = outputs(variant);
        ASSERT_EQ(got.size(), expected.size()) << variant.name();
        changed += got != expected ? 1 : 0;
        if (rounding) {
            EXPECT_LT(cascade::test::relative_error(expected, got), 0.003) << variant.name();
        } else {
            EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)), 0) << variant.name();
        }
    }
    EXPECT_EQ(changed > 0, rounding) << "ours must have run where it was asked for";
}

} // namespace
