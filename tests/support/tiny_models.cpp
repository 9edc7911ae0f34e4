// Two tables and one writer: tiny_models() has the sizes, `forms` says which tensors an architecture's layers are made
// of, and Writer turns the two into a GGUF file. What an architecture demands is in the engine's src/models/<arch>.cpp.
#include "support/tiny_models.h"

#include "ggml-cpp.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <random>
#include <stdexcept>
#include <utility>

namespace cascade::test {

namespace {

// What only some architectures have.
enum Part : uint32_t {
    RmsNorm = 1u << 0,        // else layer norm
    NormBias = 1u << 1,       // every norm has a bias
    AttnNorm = 1u << 2,       // norm before attention
    FfnNorm = 1u << 3,        // norm before the feed-forward part
    PostAttnNorm = 1u << 4,   // norm after attention; gpt-oss gives its FfnNorm this name
    PostFfnNorm = 1u << 5,    // norm after the feed-forward part
    ResidualNorm = 1u << 6,   // norms of what a layer's two residual sums leave, instead of norms before
    QkNorm = 1u << 7,         // norm of every head of Q and K
    FusedQkv = 1u << 8,       // one projection for Q, K and V
    QkvBias = 1u << 9,        // biases of the projections before attention
    OutBias = 1u << 10,       // bias of the projection after attention
    Gate = 1u << 11,          // gated feed-forward part
    FusedGate = 1u << 12,     // the same with gate and up in one tensor, named ffn_up
    FfnBias = 1u << 13,       // biases of the feed-forward part, experts and router included
    PositionTable = 1u << 14, // learned absolute positions
    TokenTypes = 1u << 15,    // learned token types
    TokenNorm = 1u << 16,     // norm of the token embeddings
    Output = 1u << 17,        // an output matrix of its own; without it the token embeddings serve
    OutputBias = 1u << 18,    // bias of the logits
    HalfRotary = 1u << 19,    // only half of each head is rotated
    ClampQkv = 1u << 20,      // Q, K and V are clamped
};

constexpr uint32_t PreNorm = AttnNorm | FfnNorm;
constexpr uint32_t AllBias = QkvBias | OutBias | FfnBias;

struct Form {
    const char * arch;
    uint32_t parts;
};

constexpr Form forms[] = {
    { "llama", RmsNorm | PreNorm | Gate | Output },
    { "gpt2", NormBias | PreNorm | FusedQkv | AllBias | PositionTable },
    { "qwen2", RmsNorm | PreNorm | QkvBias | Gate | Output },
    { "qwen3", RmsNorm | PreNorm | QkNorm | Gate },
    { "gemma2", RmsNorm | PreNorm | PostAttnNorm | PostFfnNorm | Gate },
    { "gemma3", RmsNorm | PreNorm | PostAttnNorm | PostFfnNorm | QkNorm | Gate },
    { "phi2", NormBias | AttnNorm | AllBias | Output | OutputBias | HalfRotary },
    { "phi3", RmsNorm | PreNorm | FusedQkv | FusedGate | Output },
    { "bloom", NormBias | PreNorm | FusedQkv | AllBias | TokenNorm },
    { "mpt", PreNorm | FusedQkv | ClampQkv },
    { "bert", NormBias | ResidualNorm | AllBias | PositionTable | TokenTypes | TokenNorm },
    { "starcoder2", NormBias | PreNorm | AllBias },
    { "stablelm", NormBias | PreNorm | Gate | Output | HalfRotary },
    { "qwen3moe", RmsNorm | PreNorm | QkNorm | Gate | Output },
    { "gpt-oss", RmsNorm | AttnNorm | PostAttnNorm | AllBias | Gate | Output },
};

uint32_t parts_of(const std::string & arch) {
    const auto * form =
        std::find_if(std::begin(forms), std::end(forms), [&](const Form & f) { return arch == f.arch; });
    if (form == std::end(forms)) {
        throw std::runtime_error("tiny model: unknown architecture " + arch);
    }
    return form->parts;
}

constexpr int token_types = 2;
constexpr int experts_used = 2;

// Real models cap at 50 and clamp at 6 or 8, which activations near 1 never meet: a test could not tell whether the
// backend does it.
constexpr float logit_cap = 2.0f;
constexpr float qkv_clamp = 1.5f;

class Writer {
  public:
    explicit Writer(const TinyModel & model) : model_(model), parts_(parts_of(model.arch)), gguf_(gguf_init_empty()) {
        general_keys();
        attention_keys();
        embeddings();
        for (int layer = 0; layer < model_.layers; ++layer) {
            prefix_ = "blk." + std::to_string(layer) + ".";
            attention();
            feed_forward();
        }
        prefix_.clear();
        output();
    }

    void write(const std::string & path, uint32_t seed);

  private:
    struct Tensor {
        std::string name;
        std::vector<int64_t> shape;
        float mean;
        float deviation;
    };

    bool has(uint32_t part) const { return (parts_ & part) != 0; }

    std::string full_key(const char * name) const { return model_.arch + "." + name; }
    void key(const char * name, int value) { gguf_set_val_u32(gguf_.get(), full_key(name).c_str(), uint32_t(value)); }
    void key(const char * name, float value) { gguf_set_val_f32(gguf_.get(), full_key(name).c_str(), value); }
    void key(const char * name, bool value) { gguf_set_val_bool(gguf_.get(), full_key(name).c_str(), value); }

    void tensor(const std::string & name, std::vector<int64_t> shape, float mean, float deviation) {
        tensors_.push_back({ prefix_ + name, std::move(shape), mean, deviation });
    }
    // The deviation keeps a product as large as its input. Embeddings follow the same rule although they are only
    // looked up: small ones let attention, not the token's own residual, decide the logits.
    void matrix(const std::string & name, std::vector<int64_t> shape) {
        const float deviation = 1.0f / std::sqrt(float(shape[0]));
        tensor(name, std::move(shape), 0.0f, deviation);
    }
    void bias(const std::string & name, std::vector<int64_t> shape) { tensor(name, std::move(shape), 0.0f, 0.1f); }
    void norm(const std::string & name, int size);
    void linear(const std::string & name, int in, int out, bool with_bias);
    void expert_linear(const std::string & name, int in, int out, bool with_bias);

    void general_keys();
    void attention_keys();
    void embeddings();
    void attention();
    void feed_forward();
    void experts();
    void output();

    size_t arena_size() const;

    const TinyModel & model_;
    uint32_t parts_;
    gguf_context_ptr gguf_;
    std::string prefix_; // of the names of the layer being described
    std::vector<Tensor> tensors_;
};

void Writer::norm(const std::string & name, int size) {
    tensor(name + ".weight", { size }, 1.0f, 0.1f);
    if (has(NormBias)) {
        bias(name + ".bias", { size });
    }
}

void Writer::linear(const std::string & name, int in, int out, bool with_bias) {
    matrix(name + ".weight", { in, out });
    if (with_bias) {
        bias(name + ".bias", { out });
    }
}

void Writer::expert_linear(const std::string & name, int in, int out, bool with_bias) {
    matrix(name + ".weight", { in, out, model_.experts });
    if (with_bias) {
        bias(name + ".bias", { out, model_.experts });
    }
}

void Writer::general_keys() {
    gguf_set_val_str(gguf_.get(), "general.architecture", model_.arch.c_str());
    gguf_set_val_str(gguf_.get(), "general.name", model_.name.c_str());
    gguf_set_val_str(gguf_.get(), "tokenizer.ggml.model", "no_vocab");
    if (has(TokenTypes)) {
        gguf_set_val_u32(gguf_.get(), "tokenizer.ggml.token_type_count", token_types);
    }
    key("vocab_size", model_.vocab);
    key("context_length", model_.context);
    key("embedding_length", model_.embd);
    key("block_count", model_.layers);
    key("feed_forward_length", model_.ff);
    if (model_.experts > 0) {
        key("expert_count", model_.experts);
        key("expert_used_count", experts_used);
        key("expert_feed_forward_length", model_.ff);
    }
}

void Writer::attention_keys() {
    key("attention.head_count", model_.heads);
    key("attention.head_count_kv", model_.kv_heads);
    key("attention.key_length", model_.head_size);
    key("attention.value_length", model_.head_size);
    key(has(RmsNorm) ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon", 1e-5f);
    if (model_.rotary) {
        key("rope.dimension_count", has(HalfRotary) ? model_.head_size / 2 : model_.head_size);
        key("rope.freq_base", 10000.0f);
    }
    if (model_.sliding_window > 0) {
        key("attention.sliding_window", model_.sliding_window);
        // Unlike that of the global layers, so that a test notices when the two kinds are mixed up.
        key("rope.freq_base_swa", 1000.0f);
    }
    if (model_.soft_cap) {
        key("attn_logit_softcapping", logit_cap);
        key("final_logit_softcapping", 30.0f);
    }
    if (model_.alibi) {
        key("attention.max_alibi_bias", 8.0f); // mpt reads it; bloom has the same number built in
    }
    if (has(ClampQkv)) {
        key("attention.clamp_kqv", qkv_clamp);
    }
    if (!model_.causal) {
        key("attention.causal", false);
    }
}

void Writer::embeddings() {
    matrix("token_embd.weight", { model_.embd, model_.vocab });
    if (has(PositionTable)) {
        matrix("position_embd.weight", { model_.embd, model_.context });
    }
    if (has(TokenTypes)) {
        matrix("token_types.weight", { model_.embd, token_types });
    }
    if (has(TokenNorm)) {
        norm("token_embd_norm", model_.embd);
    }
}

void Writer::attention() {
    const int q_size = model_.heads * model_.head_size;
    const int kv_size = model_.kv_heads * model_.head_size;
    if (has(AttnNorm)) {
        norm("attn_norm", model_.embd);
    }
    if (has(FusedQkv)) {
        linear("attn_qkv", model_.embd, q_size + 2 * kv_size, has(QkvBias));
    } else {
        linear("attn_q", model_.embd, q_size, has(QkvBias));
        linear("attn_k", model_.embd, kv_size, has(QkvBias));
        linear("attn_v", model_.embd, kv_size, has(QkvBias));
    }
    if (has(QkNorm)) {
        norm("attn_q_norm", model_.head_size);
        norm("attn_k_norm", model_.head_size);
    }
    if (model_.sinks) {
        tensor("attn_sinks.weight", { model_.heads }, 0.0f, 1.0f); // as large as the scores they compete with
    }
    linear("attn_output", q_size, model_.embd, has(OutBias));
    if (has(PostAttnNorm)) {
        norm("post_attention_norm", model_.embd);
    }
    if (has(ResidualNorm)) {
        norm("attn_output_norm", model_.embd);
    }
}

void Writer::feed_forward() {
    if (has(FfnNorm)) {
        norm("ffn_norm", model_.embd);
    }
    if (model_.experts > 0) {
        experts();
    } else {
        if (has(Gate)) {
            linear("ffn_gate", model_.embd, model_.ff, has(FfnBias));
        }
        linear("ffn_up", model_.embd, has(FusedGate) ? 2 * model_.ff : model_.ff, has(FfnBias));
        linear("ffn_down", model_.ff, model_.embd, has(FfnBias));
    }
    if (has(PostFfnNorm)) {
        norm("post_ffw_norm", model_.embd);
    }
    if (has(ResidualNorm)) {
        norm("layer_output_norm", model_.embd);
    }
}

void Writer::experts() {
    linear("ffn_gate_inp", model_.embd, model_.experts, has(FfnBias)); // the router
    expert_linear("ffn_gate_exps", model_.embd, model_.ff, has(FfnBias));
    expert_linear("ffn_up_exps", model_.embd, model_.ff, has(FfnBias));
    expert_linear("ffn_down_exps", model_.ff, model_.embd, has(FfnBias));
}

void Writer::output() {
    if (!model_.causal) {
        return; // an encoder's output is what its last layer leaves
    }
    norm("output_norm", model_.embd);
    if (has(Output)) {
        linear("output", model_.embd, model_.vocab, has(OutputBias));
    }
}

size_t Writer::arena_size() const {
    size_t size = 0;
    for (const Tensor & tensor : tensors_) {
        size_t data = sizeof(float);
        for (const int64_t ne : tensor.shape) {
            data *= size_t(ne);
        }
        size += ggml_tensor_overhead() + GGML_PAD(data, GGML_MEM_ALIGN);
    }
    return size;
}

void Writer::write(const std::string & path, uint32_t seed) {
    const ggml_context_ptr arena(ggml_init({ arena_size(), nullptr, false }));
    if (!arena) {
        throw std::runtime_error("tiny model: no memory for " + model_.name);
    }
    std::mt19937 random(seed);
    for (const Tensor & spec : tensors_) {
        ggml_tensor * tensor = ggml_new_tensor(arena.get(), GGML_TYPE_F32, int(spec.shape.size()), spec.shape.data());
        ggml_set_name(tensor, spec.name.c_str());
        std::normal_distribution<float> weight(spec.mean, spec.deviation);
        std::generate_n(ggml_get_data_f32(tensor), ggml_nelements(tensor), [&] { return weight(random); });
        gguf_add_tensor(gguf_.get(), tensor);
    }
    if (!gguf_write_to_file(gguf_.get(), path.c_str(), false)) {
        throw std::runtime_error("tiny model: cannot write " + path);
    }
}

} // namespace

// gemma2 and gpt-oss alternate between local and global layers, gemma3 has a global one after every five local ones:
// their numbers of layers end with a local layer again, so that both changes of kind occur.
const std::vector<TinyModel> & tiny_models() {
    static const std::vector<TinyModel> models = {
        { .name = "llama", .arch = "llama", .kv_heads = 2 },
        { .name = "gpt2", .arch = "gpt2", .rotary = false },
        { .name = "qwen2", .arch = "qwen2", .kv_heads = 2 },
        { .name = "qwen3", .arch = "qwen3", .embd = 64, .kv_heads = 2 },
        { .name = "gemma2", .arch = "gemma2", .embd = 64, .kv_heads = 2, .sliding_window = 8, .soft_cap = true },
        { .name = "gemma3", .arch = "gemma3", .layers = 7, .embd = 64, .kv_heads = 1, .sliding_window = 8 },
        { .name = "phi2", .arch = "phi2" },
        { .name = "phi3", .arch = "phi3", .kv_heads = 2 },
        // Three heads: ALiBi has a rule of its own for the slopes when their number is no power of two.
        { .name = "bloom", .arch = "bloom", .embd = 96, .heads = 3, .kv_heads = 3, .alibi = true, .rotary = false },
        { .name = "mpt", .arch = "mpt", .alibi = true, .rotary = false },
        { .name = "bert", .arch = "bert", .causal = false, .rotary = false },
        { .name = "starcoder2", .arch = "starcoder2", .kv_heads = 2 },
        { .name = "stablelm", .arch = "stablelm" },
        { .name = "moe", .arch = "qwen3moe", .kv_heads = 2, .experts = 4 },
        { .name = "gpt-oss",
          .arch = "gpt-oss",
          .embd = 64,
          .kv_heads = 2,
          .sliding_window = 8,
          .experts = 4,
          .sinks = true },
    };
    return models;
}

void write_tiny_model(const TinyModel & model, const std::string & path, uint32_t seed) {
    Writer(model).write(path, seed);
}

} // namespace cascade::test
