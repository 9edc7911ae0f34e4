// A model's activations, streamed: one pass over a window of text, each layer's rows handed over as they are computed,
// none kept.
#pragma once

#include "cascade/attention.h"
#include "cascade/cover.h"

#include "ggml.h"
#include "llama-cpp.h"

#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace cascade::cli {

enum class Source { residual, normalised, key, value };

struct ActivationListener {
    std::vector<Source> sources = { Source::residual, Source::normalised, Source::key, Source::value }; // wanted
    // `heads`: of keys and values; 1 for the others. The rows live until this returns.
    std::function<void(int layer, Source source, const TokenRows & rows, int64_t heads)> on_rows;
    // After all rows of the layer; token t is row t. Not called where the attention can't be read.
    std::function<void(int layer, const Attention & attention)> on_attention;
};

class ActivationStream {
  public:
    // All `tokens` go through the model as one batch. Throws std::runtime_error with a message for a person.
    ActivationStream(llama_model * model, int64_t tokens, int threads);

    int layers() const { return layer_count; }
    bool has(Source source) const;

    // false: interrupted. Throws std::runtime_error where the engine fails, and what the listener throws.
    bool run(std::span<const llama_token> window, const ActivationListener & to);

    // The same pass with nobody listening, in seconds; negative: interrupted.
    double run_bare(std::span<const llama_token> window);

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
    int decode(std::span<const llama_token> window, Mode as);
    void hand_over(const ggml_tensor * tensor, const Tap & tap);
    void hand_over_attention(int layer);
    TokenRows rows_of(const ggml_tensor * tensor);

    llama_context_ptr context;
    int64_t tokens;
    int layer_count = 0;
    Mode mode = Mode::look;
    std::vector<ggml_tensor *> nodes;          // that the scheduler asked about in this pass, in order
    std::unordered_multimap<size_t, Tap> taps; // by position in that order
    std::vector<std::string> tapped_names;     // by position, to see that a later pass has the same graph
    const ActivationListener * listener = nullptr;
    std::exception_ptr failure;
    std::vector<float> copied_rows;
};

} // namespace cascade::cli
