#include "cli/bench_context.h"

#include "cli/interrupt.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <stdexcept>

namespace cascade::cli {

namespace {

constexpr int decode_aborted = 2;

} // namespace

std::unique_ptr<BenchContext> BenchContext::make(llama_model * model, const ContextShape & shape, int flash_attn,
                                                 std::span<const llama_token> text) {
    llama_context_params params = llama_context_default_params();
    params.n_ctx = static_cast<uint32_t>(shape.tokens);
    params.n_batch = static_cast<uint32_t>(shape.batch);
    params.n_ubatch = static_cast<uint32_t>(shape.ubatch);
    params.n_threads = params.n_threads_batch = shape.threads;
    params.type_k = shape.type_k;
    params.type_v = shape.type_v;
    params.flash_attn_type = static_cast<llama_flash_attn_type>(flash_attn);
    params.swa_full = false; // as llama-bench
    params.abort_callback = [](void *) { return interrupted(); };
    llama_context_ptr context(llama_init_from_model(model, params));
    if (!context) {
        return nullptr;
    }
    return std::unique_ptr<BenchContext>(new BenchContext(std::move(context), shape, text));
}

// Where a window slides, tokens before the depth are overwritten by those behind it.
BenchContext::BenchContext(llama_context_ptr made, const ContextShape & shape, std::span<const llama_token> all)
    : context(std::move(made)), text(all), batch(shape.batch) {
    const llama_model * model = llama_get_model(context.get());
    drops = llama_model_n_swa(model) == 0 && !llama_model_is_recurrent(model) && !llama_model_is_hybrid(model);
}

bool BenchContext::drop_after(int64_t depth) {
    llama_memory_t memory = llama_get_memory(context.get());
    if (drops) {
        return llama_memory_seq_rm(memory, 0, static_cast<llama_pos>(depth), -1);
    }
    llama_memory_clear(memory, false);
    return depth == filled && !state.empty() &&
           llama_state_seq_set_data(context.get(), state.data(), state.size(), 0) == state.size();
}

void BenchContext::go_to(int64_t depth) {
    const int64_t kept = std::min(filled, depth);
    here = kept;
    if (kept == 0 || !drop_after(kept)) {
        llama_memory_clear(llama_get_memory(context.get()), false);
        here = 0;
    }
    filled = std::min(filled, here); // were Ctrl-C to stop the computation, no more would be sure
    const bool computed = here < depth;
    while (here < depth) {
        decode(std::min(batch, depth - here));
    }
    filled = depth;
    if (!drops && computed) {
        state.resize(llama_state_seq_get_size(context.get(), 0));
        llama_state_seq_get_data(context.get(), state.data(), state.size(), 0);
    }
}

double BenchContext::turn(int64_t tokens) {
    const auto start = std::chrono::steady_clock::now();
    decode(tokens);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void BenchContext::decode(int64_t tokens) {
    if (interrupted()) {
        throw Stopped();
    }
    auto * first = const_cast<llama_token *>(text.data() + here); // the engine only reads them
    const int code = llama_decode(context.get(), llama_batch_get_one(first, static_cast<int32_t>(tokens)));
    if (code == decode_aborted || interrupted()) {
        throw Stopped();
    }
    if (code != 0) {
        throw std::runtime_error(fmt::format(
            "the engine can't compute {} tokens at depth {} (code {}): try smaller -b and -ub", tokens, here, code));
    }
    llama_synchronize(context.get());
    here += tokens;
}

uint64_t BenchContext::cache_bytes() const { return llama_state_seq_get_size(context.get(), 0); }

} // namespace cascade::cli
