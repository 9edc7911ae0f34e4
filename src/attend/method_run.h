// One method over one window of text: block after block, layer after layer, it replaces the engine's attention by its
// own and keeps what it needs of earlier blocks.
#pragma once

#include "attend/methods.h"
#include "cascade/attention.h"

#include <array>

namespace cascade {

class MethodRun {
  public:
    struct Layer {
        double difference = 0.0; // to the output that was there, sum of squares
        double norm = 0.0;       // of that output
        bool left_alone = true;
    };

    struct Reads {
        double past = 0.0;
        double read = 0.0;
        double bytes = 0.0;
        double dense_bytes = 0.0;
    };

    // `window`: recent tokens before a block that are always read exactly.
    MethodRun(MethodSpec method, int layers, int64_t window, uint64_t seed);

    const MethodSpec & spec() const { return method; }

    // The block's own rows of the source that the method wants. Before `attend` of the same block and layer.
    void add_rows(int layer, const TokenRows & rows);

    // Replaces the block's output. Token t of the window is row t of keys and values; `first` is the block's first
    // token. Left alone: what isn't plainly causal (the mask decides), ALiBi, sinks.
    void attend(int layer, int64_t first, const Attention & attention, Team & team);

    const std::vector<Layer> & layers() const { return figures; }
    const Reads & reads() const { return sums; }

  private:
    struct Memory {
        std::vector<float> rows; // of the source, all tokens so far
        int64_t row_size = 0;
        std::vector<float> queries; // the last ones of the block before: heads x kept_queries x key_size
        std::vector<float> outputs; // copy: of all tokens so far
        bool refused = false;       // once is for good
        double tau = 0.5;           // that gave the last cover its size
    };

    TokenRows rows_of(const Memory & memory, int64_t tokens) const;
    void attend_blocks(int layer, int64_t first, const Attention & attention, Team & team, std::vector<float> & out);
    void attend_head(Block & block, int64_t kv_head, const Attention & attention, Team & team,
                     std::vector<float> & out);
    void keep_queries(Memory & memory, const Attention & attention) const;
    void write(int layer, const Attention & attention, const std::vector<float> & out);

    MethodSpec method;
    int64_t exact_window;
    uint64_t first_seed;
    std::vector<Memory> memories; // by layer
    std::vector<Layer> figures;   // by layer
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
