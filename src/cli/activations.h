// A model's activations, streamed: one pass over a window of text, each layer's rows handed over as they are computed,
// none kept.
#pragma once

#include "cascade/attention.h"
#include "cascade/cover.h"

#include "ggml.h"
#include "llama-cpp.h"

#include <functional>
#include <limits>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace cascade::cli {

struct ActivationListener {
    std::vector<Source> sources = { Source::residual, Source::normalised, Source::key, Source::value }; // wanted
    // `heads`: of keys and values; 1 for the others. The rows live until this returns.
    std::function<void(int layer, Source source, const TokenRows & rows, int64_t heads)> on_rows;
    // After all rows of the layer; token t is row t. Not called where the attention can't be read.
    std::function<void(int layer, const Attention & attention)> on_attention;
    // Before it: whether on_attention will write the whole output itself, so that the engine need not. Only the mask
    // and the numbers of the attention are there to be read.
    std::function<bool(int layer, const Attention & attention)> replaces;
};

struct StreamOptions {
    int64_t batch = 0;   // most tokens of a pass
    int64_t context = 0; // tokens of a sequence
    int sequences = 1;   // each with a cache of its own
    int threads = 1;
    int64_t outputs = 1; // most tokens of a pass whose logits are wanted
    ggml_type key_type = GGML_TYPE_F16;
    ggml_type value_type = GGML_TYPE_F16;
    // In the flash form queries, keys and output of an attention are in memory at the same time.
    bool flash = true;
};

// Some tokens of a sequence.
struct Pass {
    std::span<const llama_token> tokens;
    int64_t first = 0; // the position of the first
    llama_seq_id sequence = 0;
    int64_t outputs_from =
        std::numeric_limits<int64_t>::max(); // logits of the tokens from this one on; the last at least
};

class ActivationStream {
  public:
    // Throws std::runtime_error with a message for a person.
    ActivationStream(llama_model * model, const StreamOptions & options);

    // A window goes through the model as one batch.
    ActivationStream(llama_model * model, int64_t window, int threads)
        : ActivationStream(model, StreamOptions{ window, window, 1, threads }) {}

    int layers() const { return layer_count; }
    bool has(Source source) const;

    // false: interrupted. Throws std::runtime_error where the engine fails, and what the listener throws. A listener
    // may replace the attention's output. nullptr: nobody listens.
    bool run(const Pass & pass, const ActivationListener * to);

    // A whole window, which is all that the stream then remembers.
    bool run(std::span<const llama_token> window, const ActivationListener & to);

    // The same pass with nobody listening, in seconds; negative: interrupted.
    double run_bare(std::span<const llama_token> window);

    void forget_all();
    void copy_sequence(llama_seq_id from, llama_seq_id to); // into one that is empty

    // Of the last pass: the i-th token that has logits.
    const float * logits(int64_t i) const;

  private:
    enum class Mode { look, listen, bare };
    struct Tap {
        int layer;
        bool attention;
        Source source;
        int64_t heads;
    };

    static bool on_node(ggml_tensor * tensor, bool ask, void * self);
    static bool is_stopping(void * self);
    bool wanted(const Tap & tap) const;
    void look_at_graph(std::span<const llama_token> window);
    int decode(const Pass & pass, Mode as);
    void hand_over(const ggml_tensor * tensor, const Tap & tap);
    bool bind_attention(int layer, Attention & attention) const;
    void prepare(ggml_tensor * tensor, const Tap & tap);
    void compute_again();
    TokenRows rows_of(const ggml_tensor * tensor);

    llama_context_ptr context;
    int64_t most_tokens; // of a pass
    int64_t tokens = 0;  // of this pass
    int64_t logits_from = 0;
    int layer_count = 0;
    Mode mode = Mode::look;
    std::vector<ggml_tensor *> left_out;       // nodes that the engine doesn't compute in this pass
    std::vector<ggml_tensor *> nodes;          // that the scheduler asked about in this pass, in order
    std::unordered_multimap<size_t, Tap> taps; // by position in that order
    std::vector<std::string> tapped_names;     // by position, to see that a later pass has the same graph
    const ActivationListener * listener = nullptr;
    std::exception_ptr failure;
    std::vector<float> copied_rows;
};

} // namespace cascade::cli
