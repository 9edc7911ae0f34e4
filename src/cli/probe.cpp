#include "cli/probe.h"

#include "ggml-backend.h"

#include <algorithm>
#include <cstdio>
#include <dlfcn.h>
#include <filesystem>
#include <stdexcept>

namespace cascade::cli {

namespace {

// The engine's own log is for its own programs; here only errors are worth a line, while a model is opened.
void log_errors(ggml_log_level level, const char * text, void *) {
    if (level == GGML_LOG_LEVEL_ERROR) {
        std::fputs(text, stderr);
    }
}

void log_nothing(ggml_log_level, const char *, void *) {}

// The scheduler asks about every node before it computes any; we want none, so it goes through all of them first.
bool collect_node(ggml_tensor * tensor, bool ask, void * user) {
    if (ask) {
        static_cast<std::vector<ggml_tensor *> *>(user)->push_back(tensor);
    }
    return false;
}

bool stop_at_once(void *) { return true; }

// The engine looks for its backends beside the program; ours may stand elsewhere than the engine's libraries.
void load_backends() {
    ggml_backend_load_all();
    Dl_info library = {};
    if (ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU) == nullptr &&
        dladdr(reinterpret_cast<void *>(&ggml_backend_load_all), &library) != 0) {
        ggml_backend_load_all_from_path(std::filesystem::path(library.dli_fname).parent_path().c_str());
    }
    if (ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU) == nullptr) {
        throw std::runtime_error("the engine's CPU backend is not beside its libraries; set GGML_BACKEND_PATH to it");
    }
}

std::string metadata(const llama_model * model, const char * key) {
    char value[128] = {};
    return llama_model_meta_val_str(model, key, value, sizeof(value)) > 0 ? value : "";
}

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
    llama_log_set(log_errors, nullptr);
    load_backends();
    llama_backend_init();

    llama_model_params params = llama_model_default_params();
    params.n_gpu_layers = 0;
    params.use_extra_bufts = false; // repacking weights takes time and changes nothing in the graph
    auto probe = std::make_unique<Probe>();
    probe->model.reset(llama_model_load_from_file(options.model.c_str(), params));
    if (!probe->model) {
        throw std::runtime_error("can't load the model '" + options.model + "': give a GGUF file with -m");
    }
    probe->architecture = metadata(probe->model.get(), "general.architecture");
    probe->sliding_window = llama_model_n_swa(probe->model.get());

    probe->context.reset(llama_init_from_model(probe->model.get(), context_params(options, *probe)));
    if (!probe->context) {
        throw std::runtime_error("the engine can't create a context for '" + options.model + "'");
    }
    probe->nodes.clear(); // graphs of the engine's own warm-up, if any
    std::vector<llama_token> tokens(static_cast<size_t>(options.tokens), 0);
    llama_log_set(log_nothing, nullptr); // it will call our stopping it a failure
    llama_decode(probe->context.get(), llama_batch_get_one(tokens.data(), options.tokens));
    llama_log_set(log_errors, nullptr);
    if (probe->nodes.empty()) {
        throw std::runtime_error("the engine built no graph for '" + options.model + "'");
    }
    return probe;
}

} // namespace cascade::cli
