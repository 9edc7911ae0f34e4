#include "cli/probe.h"

#include "cli/engine.h"

#include <algorithm>
#include <stdexcept>

namespace cascade::cli {

namespace {

// The scheduler asks about every node before it computes any; we want none, so it goes through all of them first.
bool collect_node(ggml_tensor * tensor, bool ask, void * user) {
    if (ask) {
        static_cast<std::vector<ggml_tensor *> *>(user)->push_back(tensor);
    }
    return false;
}

bool stop_at_once(void *) { return true; }

llama_context_params context_params(const ProbeOptions & options, Probe & probe) {
    constexpr uint32_t cells = 512;
    constexpr uint32_t windows = 8; // so many that a sliding window's cache is smaller than the others'
    llama_context_params params = llama_context_default_params();
    params.n_ctx = std::max(cells, windows * static_cast<uint32_t>(probe.sliding_window));
    params.n_batch = params.n_ubatch = static_cast<uint32_t>(options.tokens);
    params.swa_full = false;
    params.flash_attn_type = options.flash_attention;
    params.type_k = options.cache_type_k;
    params.cb_eval = collect_node;
    params.cb_eval_user_data = &probe.nodes;
    params.abort_callback = stop_at_once;
    params.no_perf = true;
    return params;
}

} // namespace

std::unique_ptr<Probe> probe_model(const ProbeOptions & options) {
    start_engine();
    auto probe = std::make_unique<Probe>();
    probe->model = load_model(options.model, false); // repacking weights takes time and changes nothing in the graph
    probe->architecture = metadata(probe->model.get(), "general.architecture");
    probe->sliding_window = llama_model_n_swa(probe->model.get());

    probe->context.reset(llama_init_from_model(probe->model.get(), context_params(options, *probe)));
    if (!probe->context) {
        throw std::runtime_error("the engine can't create a context for '" + options.model + "'");
    }
    probe->nodes.clear(); // graphs of the engine's own warm-up, if any
    std::vector<llama_token> tokens(static_cast<size_t>(options.tokens), 0);
    log_nothing(); // it will call our stopping it a failure
    llama_decode(probe->context.get(), llama_batch_get_one(tokens.data(), options.tokens));
    log_errors_only();
    if (probe->nodes.empty()) {
        throw std::runtime_error("the engine built no graph for '" + options.model + "'");
    }
    return probe;
}

} // namespace cascade::cli
