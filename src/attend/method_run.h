// One method over one window of text: block after block, layer after layer, it replaces the engine's attention by its
// own and keeps what it needs of earlier blocks.
#pragma once

#include "attend/methods.h"
#include "attend/reads.h"
#include "cascade/attention.h"

#include <array>

namespace cascade {

class MethodRun {
  public:
    // `window`: recent tokens before a block that are always read exactly.
    MethodRun(MethodSpec method, int layers, int64_t window, uint64_t seed);

    const MethodSpec & spec() const { return method; }

    // The block's own rows of the source that the method wants. Before `attend` of the same block and layer.
    void add_rows(int layer, const TokenRows & rows);

    // Whether `attend` will write this block's output. `first` is the block's first token. Left alone: what isn't
    // plainly causal (the mask decides), ALiBi, sinks, and what all stands in the window. Reads the mask alone.
    bool replaces(int layer, int64_t first, const Attention & attention);

    // Replaces the block's output. Token t of the window is row t of keys and values. `dense`: the engine's own output
    // stands there, and the difference to it is measured.
    void attend(int layer, int64_t first, const Attention & attention, bool dense, Team & team);

    const std::vector<LayerError> & layers() const { return figures; }
    const Reads & reads() const { return sums; }

  private:
    struct Memory {
        std::vector<float> rows; // of the source, all tokens so far
        int64_t row_size = 0;
        std::vector<float> queries; // the last ones of the block before: heads x kept_queries x key_size
        std::vector<float> outputs; // copy: of all tokens so far
        bool refused = false;       // once is for good
        int64_t checked = -1;       // the last block whose mask was looked at
        double tau = 0.5;           // that gave the last cover its size
    };

    TokenRows rows_of(const Memory & memory, int64_t tokens) const;
    void attend_on_representatives(int layer, int64_t first, const Attention & attention, Team & team,
                                   std::vector<float> & out);
    void attend_blocks(int layer, int64_t first, const Attention & attention, Team & team, std::vector<float> & out);
    void attend_head(Block & block, int64_t kv_head, const Attention & attention, Team & team,
                     std::vector<float> & out);
    void keep_queries(Memory & memory, const Attention & attention) const;
    void write(const Attention & attention, const std::vector<float> & out) const;
    void measure(int layer, const Attention & attention, const std::vector<float> & out);

    MethodSpec method;
    int64_t exact_window;
    uint64_t first_seed;
    std::vector<Memory> memories;    // by layer
    std::vector<LayerError> figures; // by layer
    Reads sums;
};

// Every query sees exactly the tokens up to its own, the first one's being `first`; nothing else is added to logits.
bool is_plainly_causal(const Attention & attention, int64_t first);

// The paper's attention: representatives attend to representatives, all others take the output of theirs. `outputs` has
// heads x value_size floats for each token so far, those before the block filled; the block's are added.
void attend_copy(const Attention & attention, int64_t first, const Cover & cover, std::vector<float> & outputs,
                 Team & team);

// Every query, but only keys of representatives, and a window of its own that moves with it. `count`: the logarithm of
// the number of tokens that a representative speaks for so far is added to its logit.
void attend_representatives(const Attention & attention, int64_t first, const Cover & cover, int64_t window, bool count,
                            std::vector<float> & out, Team & team);

} // namespace cascade
