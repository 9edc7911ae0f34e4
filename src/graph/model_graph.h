// What a graph of the engine says about the model it computes: layers, their attention, their linear maps.
//
// Everything points into the engine's own tensors and lives as long as they do. Nothing here is altered.
#pragma once

#include "ggml.h"

#include <span>
#include <string>
#include <vector>

namespace cascade::graph {

using Nodes = std::span<ggml_tensor * const>;

enum class AttentionForm {
    flash,   // one FLASH_ATTN_EXT node
    softmax, // MUL_MAT, [SCALE, TANH, SCALE,] [ADD,] SOFT_MAX, MUL_MAT
};

inline const char * form_name(AttentionForm form) { return form == AttentionForm::flash ? "flash" : "softmax"; }

struct AttentionSite {
    AttentionForm form = AttentionForm::flash;
    std::vector<int> nodes; // in order; the last one's output is the attention's output

    const ggml_tensor * query = nullptr; // [key size, queries, heads, streams]
    const ggml_tensor * key = nullptr;   // [key size, tokens, kv heads, streams]
    const ggml_tensor * value = nullptr; // flash: [value size, tokens, kv heads, streams]; softmax: tokens first
    const ggml_tensor * mask = nullptr;
    const ggml_tensor * sinks = nullptr;
    const ggml_tensor * bias = nullptr; // added to the logits before the softmax (T5's kind)
    const ggml_tensor * output = nullptr;

    float pre_scale = 1.0F; // see cascade::Attention
    float soft_cap = 0.0F;
    float post_scale = 1.0F;
    float max_bias = 0.0F;

    bool uses_cache() const { return key_cache != nullptr; }
    const ggml_tensor * key_cache = nullptr; // the leaf behind key and value; nullptr: computed in this graph
    const ggml_tensor * value_cache = nullptr;

    int64_t heads() const { return query->ne[2]; }
    int64_t kv_heads() const { return key->ne[2]; }
    int64_t key_size() const { return query->ne[0]; }
    int64_t value_size() const { return output->ne[0]; }
    int64_t tokens() const { return key->ne[1]; }
    int64_t queries() const { return query->ne[1]; }
};

// A SET_ROWS node that writes cells of a KV cache.
struct CacheWrite {
    int node = -1;
    const ggml_tensor * cache = nullptr; // the cache's leaf
    const ggml_tensor * rows = nullptr;  // what is written
    const ggml_tensor * index = nullptr; // where: cell numbers (transposed value caches: element numbers)
};

// A node that multiplies a weight.
struct LinearSite {
    int node = -1;
    std::string name; // "attn_q", "ffn_down", "output": the weight's name without layer and ".weight"
    const ggml_tensor * weight = nullptr;
    const ggml_tensor * input = nullptr;
    int input_group = -1; // sites of equal number read the same input
    bool routed = false;  // MUL_MAT_ID: the weight of a mixture's experts
};

struct Layer {
    int index = -1;
    std::vector<AttentionSite> attention; // one in the usual model
    bool sliding = false;                 // its cache holds fewer cells than the model's largest: a sliding window

    const ggml_tensor * residual = nullptr;    // layer input, before its normalisation
    const ggml_tensor * normalised = nullptr;  // what the query, key and value projections read
    const ggml_tensor * norm_weight = nullptr; // that a norm before the attention is multiplied with: what tells layers
                                               // of one model from those of another (weight_identity.h)
    const ggml_tensor * pre_rotary_key = nullptr;
    const ggml_tensor * post_rotary_key = nullptr; // the same tensor where the model has no rotary embedding
    const ggml_tensor * new_value = nullptr;       // the value rows that this graph computes
    std::vector<CacheWrite> key_writes;
    std::vector<CacheWrite> value_writes;

    std::vector<LinearSite> linear;
};

struct Unrecognised {
    int node = -1;
    std::string name;
    std::string op;
    std::string why;
};

struct ModelGraph {
    std::vector<Layer> layers;       // by index
    std::vector<LinearSite> outside; // linear maps of no layer: output head, token embeddings of encoders, …
    std::vector<Unrecognised> unrecognised;
};

// Reads a graph, whole or in part. Never fails on a graph it doesn't know: what isn't recognised is reported as such.
// Throws std::bad_alloc at most.
ModelGraph read_graph(Nodes nodes);

} // namespace cascade::graph
