// The inputs of a model's linear maps, streamed: a pass over some tokens, each wanted input's rows handed over as they
// are computed, none kept. Maps that read the same input share it.
#pragma once

#include "subspace/products.h"

#include "ggml.h"
#include "llama-cpp.h"

#include <exception>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace cascade::cli {

struct SharedInput {
    std::string name; // "blk.3.attn_q": the first weight that reads it
    std::string kind; // "attn_q"
    int layer = -1;
    int64_t width = 0;
    std::vector<std::string> weights; // "blk.3.attn_q.weight", … in the graph's order
};

class LinearInputs {
  public:
    // The rows live until it returns.
    using Listener = std::function<void(size_t input, const subspace::MatrixView & rows)>;

    // `window`: most tokens of a sequence. `kinds`: of inputs, by name; none: all. Throws std::runtime_error with a
    // message for a person.
    LinearInputs(llama_model * model, int64_t window, int threads, const std::vector<std::string> & kinds = {});

    // Of layers; in the graph's order. Experts' weights and embeddings are none.
    const std::vector<SharedInput> & all() const { return inputs; }
    int64_t batch() const { return most_tokens; } // of a pass

    // Tokens of the sequence from position `first` on; first 0 begins a new one. Only what the wanted inputs need is
    // computed. false: interrupted before it. Throws what the listener throws, and std::runtime_error where the engine
    // fails.
    bool run(std::span<const llama_token> tokens, int64_t first, const std::vector<bool> & wanted,
             const Listener & listener);

    // The same with nobody listening and the last token's logits, as a prompt is read, in seconds; negative:
    // interrupted.
    double run_bare(std::span<const llama_token> tokens, int64_t first);

  private:
    static bool on_node(ggml_tensor * tensor, bool ask, void * self);
    static bool is_stopping(void * self);
    void look_at_graph(const std::vector<std::string> & kinds);
    const size_t * input_of(const ggml_tensor * node) const; // that this node is the first reader of; nullptr: none
    void hand_over(const ggml_tensor * node, size_t input);
    int decode(std::span<const llama_token> tokens, int64_t first, bool all_outputs);

    enum class Mode { look, listen, bare };

    llama_context_ptr context;
    int64_t most_tokens = 0;
    Mode mode = Mode::look;
    std::vector<ggml_tensor *> nodes; // of the first look
    std::vector<SharedInput> inputs;
    std::unordered_map<std::string, size_t> by_weight; // the first readers
    const std::vector<bool> * wanted_inputs = nullptr;
    const Listener * listening = nullptr;
    int64_t pass_tokens = 0;
    size_t left = 0; // wanted inputs that this pass hasn't come to
    std::exception_ptr failure;
};

} // namespace cascade::cli
