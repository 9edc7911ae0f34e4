// One of the contexts that `cascade bench` lets take turns.
#pragma once

#include "llama-cpp.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace cascade::cli {

struct Stopped {}; // thrown where Ctrl-C ended a computation

struct ContextShape {
    int64_t tokens = 0; // the longest test, its depth included
    int batch = 0;
    int ubatch = 0;
    int threads = 0;
    ggml_type type_k = GGML_TYPE_F16;
    ggml_type type_v = GGML_TYPE_F16;
};

class BenchContext {
  public:
    // `text` has a token for every position and outlives the context. Nothing where the engine refuses the shape.
    static std::unique_ptr<BenchContext> make(llama_model * model, const ContextShape & shape, int flash_attn,
                                              std::span<const llama_token> text);

    // Leaves exactly so many tokens in the cache, computed by this context itself.
    void go_to(int64_t depth);

    // Computes the next tokens of the text and returns the seconds it took.
    double turn(int64_t tokens);

    // Keys and values (and recurrent state) of all tokens in the cache, as the engine would save them.
    uint64_t cache_bytes() const;

  private:
    BenchContext(llama_context_ptr made, const ContextShape & shape, std::span<const llama_token> all);
    bool drop_after(int64_t depth);
    void decode(int64_t tokens);

    llama_context_ptr context;
    std::span<const llama_token> text;
    int64_t batch;
    bool drops;                 // tokens can be taken from the end of the cache
    int64_t here = 0;           // tokens in the cache
    int64_t filled = 0;         // of them, those of the latest depth
    std::vector<uint8_t> state; // at that depth, where tokens can't be taken away
};

} // namespace cascade::cli
