// Tiny random models, one per kind of graph the engine builds, written as GGUF by the tests themselves.
//
// No test then needs a download, and each architecture's own graph (fused projections, windows, sinks, experts, ...)
// runs in milliseconds. The models have no tokenizer: tests feed token numbers below TinyModel::vocab.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cascade::test {

struct TinyModel {
    std::string name; // what tests call it: usually the architecture's name
    std::string arch; // general.architecture
    int layers = 3;
    int embd = 128;
    int heads = 4;
    int kv_heads = 4;
    int head_size = 32; // a multiple of 32, so that block-quantized KV caches work
    int ff = 128;       // of one expert, where there are experts
    int context = 256;
    int vocab = 96;
    int sliding_window = 0; // 0: none; short enough that ten tokens outgrow it
    int experts = 0;        // 0: dense; other rounding may turn a near tie into another expert and change much
    bool causal = true;     // false: an encoder, with embeddings for output and no KV cache
    bool alibi = false;
    bool rotary = true;
    bool soft_cap = false; // attention logit soft-cap
    bool sinks = false;    // attention sinks
};

const std::vector<TinyModel> & tiny_models();

// Writes the model with random F32 weights, scaled so that activations stay near 1, to path; the same model and seed
// give the same bytes (with one standard library). A test may change a copy of a model first, e.g. its layers or
// head_size, as far as the architecture allows: most want heads * head_size == embd. Throws std::runtime_error.
void write_tiny_model(const TinyModel & model, const std::string & path, uint32_t seed = 1);

} // namespace cascade::test
