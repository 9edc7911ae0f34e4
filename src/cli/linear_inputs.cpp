#include "cli/linear_inputs.h"

#include "cli/engine.h"
#include "cli/interrupt.h"
#include "graph/model_graph.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <numeric>
#include <stdexcept>

namespace cascade::cli {

namespace {

constexpr std::string_view weight_suffix = ".weight";
constexpr int64_t most_logits = int64_t{ 128 }
                                << 20U; // of a pass: all tokens have some, or the last layer would skip them
constexpr int64_t least_batch = 32;

int64_t batch_for(const llama_model * model, int64_t window) {
    const int64_t vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));
    int64_t batch = subspace::PackedRun::depth;
    while (batch > least_batch && batch * vocabulary > most_logits) {
        batch /= 2;
    }
    return std::min(batch, window);
}

// Rows of tokens as they stand, which is how every usual model computes them.
bool is_readable(const graph::LinearSite & site) {
    const ggml_tensor * input = site.input;
    return !site.routed && input != nullptr && input->type == GGML_TYPE_F32 && input->ne[2] == 1 && input->ne[3] == 1 &&
           input->nb[0] == sizeof(float) && ggml_n_dims(site.weight) == 2 && site.weight->ne[0] == input->ne[0];
}

std::string stem_of(const ggml_tensor * weight) {
    const std::string name = weight->name;
    return name.substr(0, name.size() - weight_suffix.size());
}

} // namespace

LinearInputs::LinearInputs(llama_model * model, int64_t window, int threads, const std::vector<std::string> & kinds)
    : most_tokens(batch_for(model, window)) {
    constexpr const char * encoder_message =
        "a model with an encoder can't be calibrated: give one that only generates text";
    if (llama_model_has_encoder(model)) {
        throw std::runtime_error(encoder_message);
    }
    llama_context_params params = llama_context_default_params();
    params.n_ctx = static_cast<uint32_t>(window);
    params.n_batch = params.n_ubatch = params.n_outputs_max = static_cast<uint32_t>(most_tokens);
    params.n_threads = params.n_threads_batch = threads;
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
    params.cb_eval = on_node;
    params.cb_eval_user_data = this;
    params.abort_callback = is_stopping;
    params.abort_callback_data = this;
    params.no_perf = true;
    context.reset(llama_init_from_model(model, params));
    if (!context) {
        throw std::runtime_error("the engine can't create a context of " + std::to_string(window) +
                                 " tokens: give a smaller one with -c");
    }
    if (llama_get_memory(context.get()) == nullptr) {
        throw std::runtime_error(encoder_message);
    }
    look_at_graph(kinds);
}

void LinearInputs::look_at_graph(const std::vector<std::string> & kinds) {
    const std::vector<llama_token> any(static_cast<size_t>(most_tokens), 0);
    nodes.clear(); // graphs of the engine's own warm-up, if any
    decode(any, 0, true);
    constexpr size_t unwanted = std::numeric_limits<size_t>::max();
    std::map<int, size_t> by_group;
    for (const graph::Layer & layer : graph::read_graph(nodes).layers) {
        for (const graph::LinearSite & site : layer.linear) {
            if (!is_readable(site) || nodes[static_cast<size_t>(site.node)]->src[0] != site.weight) {
                continue;
            }
            const bool wanted_kind = kinds.empty() || std::find(kinds.begin(), kinds.end(), site.name) != kinds.end();
            const auto [group, is_new] = by_group.try_emplace(site.input_group, wanted_kind ? inputs.size() : unwanted);
            if (group->second == unwanted) {
                continue;
            }
            if (is_new) {
                inputs.push_back({ stem_of(site.weight), site.name, layer.index, site.input->ne[0], {} });
                by_weight.emplace(site.weight->name, group->second);
            }
            inputs[group->second].weights.emplace_back(site.weight->name);
        }
    }
    nodes.clear();
    if (inputs.empty()) {
        throw std::runtime_error(kinds.empty()
                                     ? "no linear map of this model is recognised: 'cascade graph' shows what is"
                                     : "the model has no such --inputs: give names of maps, such as attn_q,ffn_gate");
    }
}

bool LinearInputs::is_stopping(void * self) {
    const auto * stream = static_cast<const LinearInputs *>(self);
    return stream->mode == Mode::look || stream->failure != nullptr || (stream->mode == Mode::bare && interrupted());
}

const size_t * LinearInputs::input_of(const ggml_tensor * node) const {
    if (node->op != GGML_OP_MUL_MAT) {
        return nullptr;
    }
    const auto found = by_weight.find(node->src[0]->name);
    return found != by_weight.end() && (*wanted_inputs)[found->second] ? &found->second : nullptr;
}

// Asked about every node before it is computed, and told after those it wanted. Not going on skips the rest of the
// graph, which nobody wants: the output head at least.
bool LinearInputs::on_node(ggml_tensor * tensor, bool ask, void * self) {
    auto * stream = static_cast<LinearInputs *>(self);
    try { // the engine is C
        if (stream->mode != Mode::listen) {
            if (ask && stream->mode == Mode::look) {
                stream->nodes.push_back(tensor);
            }
            return false;
        }
        const size_t * input = stream->input_of(tensor);
        if (ask || input == nullptr) {
            return input != nullptr;
        }
        stream->hand_over(tensor, *input);
        return --stream->left > 0;
    } catch (...) {
        stream->failure = std::current_exception();
        return false;
    }
}

void LinearInputs::hand_over(const ggml_tensor * node, size_t input) {
    const ggml_tensor * rows = node->src[1];
    if (rows->type != GGML_TYPE_F32 || rows->ne[0] != inputs[input].width || rows->ne[1] != pass_tokens ||
        rows->nb[0] != sizeof(float) || rows->nb[1] % sizeof(float) != 0 || rows->data == nullptr) {
        throw std::runtime_error("can't read the rows of " + inputs[input].name);
    }
    (*listening)(input, { static_cast<const float *>(rows->data), rows->ne[1], rows->ne[0],
                          static_cast<int64_t>(rows->nb[1] / sizeof(float)) });
}

int LinearInputs::decode(std::span<const llama_token> tokens, int64_t first, bool all_outputs) {
    pass_tokens = static_cast<int64_t>(tokens.size());
    failure = nullptr;
    if (first == 0) {
        llama_memory_clear(llama_get_memory(context.get()), true);
    }
    std::vector<llama_token> copy(tokens.begin(), tokens.end());
    std::vector<llama_pos> positions(copy.size());
    std::iota(positions.begin(), positions.end(), static_cast<llama_pos>(first));
    std::vector<int32_t> counts(copy.size(), 1);
    llama_seq_id sequence = 0;
    std::vector<llama_seq_id *> sequences(copy.size(), &sequence);
    std::vector<int8_t> outputs(copy.size(), 1);
    std::fill_n(outputs.begin(), all_outputs ? 0 : pass_tokens - 1, int8_t{ 0 });
    if (mode == Mode::look) {
        log_nothing(); // it will call our stopping it a failure
    }
    const int result =
        llama_decode(context.get(), { static_cast<int32_t>(tokens.size()), copy.data(), nullptr, positions.data(),
                                      counts.data(), sequences.data(), outputs.data() });
    log_errors_only();
    if (failure != nullptr) {
        std::rethrow_exception(failure);
    }
    return result;
}

bool LinearInputs::run(std::span<const llama_token> tokens, int64_t first, const std::vector<bool> & wanted,
                       const Listener & listener) {
    if (interrupted()) {
        return false;
    }
    mode = Mode::listen;
    wanted_inputs = &wanted;
    listening = &listener;
    left = static_cast<size_t>(std::count(wanted.begin(), wanted.end(), true));
    const int result = decode(tokens, first, true);
    if (result != 0 || left != 0) {
        throw std::runtime_error("the engine failed on this text (llama_decode: " + std::to_string(result) + ")");
    }
    return true;
}

double LinearInputs::run_bare(std::span<const llama_token> tokens, int64_t first) {
    mode = Mode::bare;
    const auto start = std::chrono::steady_clock::now();
    const int result = decode(tokens, first, false);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (result != 0 && !interrupted()) {
        throw std::runtime_error("the engine failed on this text (llama_decode: " + std::to_string(result) + ")");
    }
    return interrupted() ? -1.0 : seconds;
}

} // namespace cascade::cli
