#include "cli/activations.h"

#include "cli/engine.h"
#include "cli/interrupt.h"
#include "graph/bind.h"
#include "graph/model_graph.h"
#include "graph/tensor.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <stdexcept>

namespace cascade::cli {

namespace {

constexpr const char * encoder_message = "a model with an encoder can't be analysed: give one that only generates text";

constexpr int64_t cache_granule = 256; // the engine rounds a sequence's cells up to this

llama_context_params context_params(const StreamOptions & options) {
    llama_context_params params = llama_context_default_params();
    const int64_t cells = (options.context + cache_granule - 1) / cache_granule * cache_granule;
    params.n_ctx = static_cast<uint32_t>(options.sequences > 1 ? cells * options.sequences : options.context);
    params.n_batch = params.n_ubatch = static_cast<uint32_t>(options.batch);
    params.n_seq_max = static_cast<uint32_t>(options.sequences);
    params.n_threads = params.n_threads_batch = options.threads;
    params.flash_attn_type = options.flash ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
    params.n_outputs_max = static_cast<uint32_t>(options.outputs); // logits of all would be the largest buffer by far
    params.type_k = options.key_type;
    params.type_v = options.value_type;
    params.no_perf = true;
    return params;
}

// Tokens stand along the last dimension that has any length; a single one along the next, which has none.
int token_dimension(const ggml_tensor * tensor, int64_t tokens) {
    int dimension = GGML_MAX_DIMS - 1;
    while (dimension > 0 && tensor->ne[dimension] == 1) {
        dimension--;
    }
    return tokens == 1 ? std::min(dimension + 1, GGML_MAX_DIMS - 1) : dimension;
}

// The values of a token's row, wherever they stand.
void copy_row(const char * base, const ggml_tensor * tensor, int token_dim, ToFloat convert, float * out) {
    const int64_t outer = token_dim > 2 ? tensor->ne[2] : 1;
    const int64_t inner = token_dim > 1 ? tensor->ne[1] : 1;
    for (int64_t j = 0; j < outer; j++) {
        for (int64_t i = 0; i < inner; i++, out += tensor->ne[0]) {
            convert(base + (static_cast<size_t>(i) * tensor->nb[1]) + (static_cast<size_t>(j) * tensor->nb[2]), out,
                    tensor->ne[0]);
        }
    }
}

bool rows_are_packed(const ggml_tensor * tensor, int token_dim) {
    size_t expected = sizeof(float);
    for (int i = 0; i < token_dim; i++) {
        if (tensor->nb[i] != expected) {
            return false;
        }
        expected *= static_cast<size_t>(tensor->ne[i]);
    }
    return tensor->type == GGML_TYPE_F32 && tensor->nb[token_dim] % sizeof(float) == 0;
}

// false: interrupted.
bool succeeded(int decoded) {
    if (decoded != 0 && !interrupted()) {
        throw std::runtime_error("the engine failed on this window (llama_decode: " + std::to_string(decoded) + ")");
    }
    return !interrupted();
}

} // namespace

ActivationStream::ActivationStream(llama_model * model, const StreamOptions & options) : most_tokens(options.batch) {
    if (llama_model_has_encoder(model)) {
        throw std::runtime_error(encoder_message);
    }
    llama_context_params params = context_params(options);
    params.cb_eval = on_node;
    params.cb_eval_user_data = this;
    params.abort_callback = is_stopping;
    params.abort_callback_data = this;
    context.reset(llama_init_from_model(model, params));
    if (!context) {
        throw std::runtime_error("the engine can't create a context of " + std::to_string(options.context) +
                                 " tokens: give a smaller one with -c");
    }
    if (llama_get_memory(context.get()) == nullptr) {
        throw std::runtime_error(encoder_message);
    }
    const std::vector<llama_token> any(static_cast<size_t>(options.batch), 0);
    look_at_graph(any);
}

bool ActivationStream::is_stopping(void * self) {
    const auto * stream = static_cast<const ActivationStream *>(self);
    return stream->mode == Mode::look || stream->failure != nullptr || interrupted();
}

// Asked about every node before it is computed, and told after those it wanted.
bool ActivationStream::on_node(ggml_tensor * tensor, bool ask, void * self) {
    auto * stream = static_cast<ActivationStream *>(self);
    if (stream->mode == Mode::bare) {
        return false;
    }
    try { // the engine is C
        if (ask) {
            stream->nodes.push_back(tensor);
        }
        const auto [first, last] = stream->taps.equal_range(stream->nodes.size() - 1);
        bool any = false;
        for (auto tap = first; tap != last && stream->mode == Mode::listen; ++tap) {
            if (stream->wanted(tap->second)) {
                any = true;
                ask ? stream->prepare(tensor, tap->second) : stream->hand_over(tensor, tap->second);
            }
        }
        return ask ? any : !interrupted();
    } catch (...) {
        stream->failure = std::current_exception();
        return false;
    }
}

bool ActivationStream::wanted(const Tap & tap) const {
    if (tap.attention) {
        return listener->on_attention != nullptr;
    }
    return listener->on_rows != nullptr &&
           std::find(listener->sources.begin(), listener->sources.end(), tap.source) != listener->sources.end();
}

void ActivationStream::forget_all() { llama_memory_clear(llama_get_memory(context.get()), true); }

void ActivationStream::copy_sequence(llama_seq_id from, llama_seq_id to) {
    llama_memory_seq_cp(llama_get_memory(context.get()), from, to, -1, -1);
}

const float * ActivationStream::logits(int64_t i) const {
    return llama_get_logits_ith(context.get(), static_cast<int32_t>(logits_from + i));
}

int ActivationStream::decode(const Pass & pass, Mode as) {
    if (static_cast<int64_t>(pass.tokens.size()) > most_tokens) { // the engine would abort
        throw std::runtime_error("a pass of " + std::to_string(pass.tokens.size()) + " tokens, where " +
                                 std::to_string(most_tokens) + " are the most");
    }
    mode = as;
    nodes.clear();
    tokens = static_cast<int64_t>(pass.tokens.size());
    logits_from = std::min(pass.outputs_from, tokens - 1);
    std::vector<llama_token> copy(pass.tokens.begin(), pass.tokens.end());
    std::vector<llama_pos> positions(copy.size());
    std::iota(positions.begin(), positions.end(), static_cast<llama_pos>(pass.first));
    std::vector<int32_t> counts(copy.size(), 1);
    llama_seq_id sequence = pass.sequence;
    std::vector<llama_seq_id *> sequences(copy.size(), &sequence);
    std::vector<int8_t> outputs(copy.size(), 0);
    std::fill(outputs.begin() + logits_from, outputs.end(), 1);
    if (as == Mode::look) {
        log_nothing();
    }
    const int result =
        llama_decode(context.get(), { static_cast<int32_t>(tokens), copy.data(), nullptr, positions.data(),
                                      counts.data(), sequences.data(), outputs.data() });
    log_errors_only();
    compute_again();
    return result;
}

void ActivationStream::look_at_graph(std::span<const llama_token> window) {
    decode({ window }, Mode::look);
    forget_all();
    const graph::ModelGraph graph = graph::read_graph(nodes);
    layer_count = static_cast<int>(graph.layers.size());
    if (layer_count < llama_model_n_layer(llama_get_model(context.get()))) {
        throw std::runtime_error("not all layers of this model are recognised: 'cascade graph' shows what is");
    }
    for (size_t i = 0; i < nodes.size(); i++) {
        tapped_names.emplace_back(nodes[i]->name);
        for (int index = 0; index < layer_count; index++) {
            const graph::Layer & layer = graph.layers[static_cast<size_t>(index)];
            const int64_t heads = layer.attention.empty() ? 1 : layer.attention.front().kv_heads();
            const auto add = [&](const ggml_tensor * wanted, bool attention, Source source, int64_t of_heads) {
                if (wanted == nodes[i]) {
                    taps.emplace(i, Tap{ index, attention, source, of_heads });
                }
            };
            add(layer.residual, false, Source::residual, 1);
            add(layer.normalised, false, Source::normalised, 1);
            add(layer.pre_rotary_key, false, Source::key, heads);
            add(layer.new_value, false, Source::value, heads);
            if (!layer.attention.empty() && layer.attention.front().form == graph::AttentionForm::flash) {
                add(layer.attention.front().output, true, Source::residual, 1);
            }
        }
    }
}

bool ActivationStream::has(Source source) const {
    return std::count_if(taps.begin(), taps.end(), [&](const auto & tap) {
               return !tap.second.attention && tap.second.source == source;
           }) == layer_count;
}

bool ActivationStream::run(std::span<const llama_token> window, const ActivationListener & to) {
    forget_all();
    return run(Pass{ window }, &to);
}

bool ActivationStream::run(const Pass & pass, const ActivationListener * to) {
    listener = to;
    failure = nullptr;
    const int result = decode(pass, to != nullptr ? Mode::listen : Mode::bare);
    if (failure != nullptr) {
        std::rethrow_exception(failure);
    }
    return succeeded(result);
}

double ActivationStream::run_bare(std::span<const llama_token> window) {
    failure = nullptr;
    forget_all();
    const auto start = std::chrono::steady_clock::now();
    const int result = decode({ window }, Mode::bare);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return succeeded(result) ? seconds : -1.0;
}

// A node without this flag is passed over by the engine.
void ActivationStream::prepare(ggml_tensor * tensor, const Tap & tap) {
    Attention attention;
    if (tap.attention && listener->replaces != nullptr && bind_attention(tap.layer, attention) &&
        listener->replaces(tap.layer, attention)) {
        tensor->flags &= ~GGML_TENSOR_FLAG_COMPUTE;
        left_out.push_back(tensor);
    }
}

// The engine may use a graph again.
void ActivationStream::compute_again() {
    for (ggml_tensor * tensor : left_out) {
        tensor->flags |= GGML_TENSOR_FLAG_COMPUTE;
    }
    left_out.clear();
}

void ActivationStream::hand_over(const ggml_tensor * tensor, const Tap & tap) {
    if (nodes.size() > tapped_names.size() || tapped_names[nodes.size() - 1] != tensor->name) {
        throw std::runtime_error("the engine's graph changed between two passes");
    }
    Attention attention;
    if (!tap.attention) {
        listener->on_rows(tap.layer, tap.source, rows_of(tensor), tap.heads);
    } else if (bind_attention(tap.layer, attention)) {
        listener->on_attention(tap.layer, attention);
    }
}

TokenRows ActivationStream::rows_of(const ggml_tensor * tensor) {
    const int token_dim = token_dimension(tensor, tokens);
    const int64_t size = ggml_nelements(tensor) / tensor->ne[token_dim];
    const ToFloat convert = graph::to_float(tensor->type);
    const bool dense_values = tensor->nb[0] == ggml_type_size(tensor->type);
    if (tensor->ne[token_dim] != tokens || convert == nullptr || !dense_values || tensor->data == nullptr) {
        throw std::runtime_error(std::string("can't read the rows of ") + tensor->name);
    }
    const auto * base = static_cast<const char *>(tensor->data);
    if (rows_are_packed(tensor, token_dim)) {
        const auto stride = static_cast<int64_t>(tensor->nb[token_dim] / sizeof(float));
        return { reinterpret_cast<const float *>(base), tokens, size, stride };
    }
    copied_rows.resize(static_cast<size_t>(tokens * size));
    for (int64_t t = 0; t < tokens; t++) {
        copy_row(base + (static_cast<size_t>(t) * tensor->nb[token_dim]), tensor, token_dim, convert,
                 copied_rows.data() + (t * size));
    }
    return { copied_rows.data(), tokens, size, size };
}

// The sites found at the first look point to tensors of that pass; this pass has its own.
bool ActivationStream::bind_attention(int layer, Attention & attention) const {
    const graph::ModelGraph graph = graph::read_graph(nodes);
    if (static_cast<int>(graph.layers.size()) <= layer) {
        return false;
    }
    const auto & sites = graph.layers[static_cast<size_t>(layer)].attention;
    return !sites.empty() && graph::bind_attention(sites.front(), attention).empty() && attention.streams == 1 &&
           attention.queries == tokens && attention.tokens >= tokens;
}

} // namespace cascade::cli
