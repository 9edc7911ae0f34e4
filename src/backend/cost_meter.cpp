#include "backend/cost_meter.h"

#include "attend/joint/joint_attention.h"
#include "attend/kernels/exact.h"
#include "graph/bind.h"
#include "graph/shadow.h"

#include "ggml-alloc.h"
#include "ggml-backend.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

namespace cascade::backend {

namespace {

struct FreeContext {
    void operator()(ggml_context * context) const { ggml_free(context); }
};
struct FreeBuffer {
    void operator()(ggml_backend_buffer_t buffer) const { ggml_backend_buffer_free(buffer); }
};

constexpr float usual_epsilon = 0.05F;
constexpr float query_size = 0.1F; // attention is flat: on a cover nothing is opened
constexpr int fewest_rounds = 3;
constexpr int most_rounds = 10;
constexpr double enough_seconds = 0.02;
constexpr size_t bytes_elsewhere = 8 << 20; // that a thread touches between two measurements

// Numbers that look like a model's, made quickly.
class Noise {
  public:
    float next() {
        state = (state * 6364136223846793005U) + 1442695040888963407U;
        constexpr uint64_t part = 0xFFFF;
        const uint64_t sum = (state & part) + ((state >> 16U) & part) + ((state >> 32U) & part) + (state >> 48U);
        return (static_cast<float>(sum) / 37837.0F) - 3.4641F; // four uniform ones: mean 0, variance 1
    }

    void fill(ggml_tensor * tensor, float size) {
        std::vector<float> values(static_cast<size_t>(ggml_nelements(tensor)));
        std::generate(values.begin(), values.end(), [&] { return size * next(); });
        if (tensor->type == GGML_TYPE_F32) {
            std::copy(values.begin(), values.end(), static_cast<float *>(tensor->data));
        } else {
            ggml_quantize_chunk(tensor->type, values.data(), tensor->data, 0, ggml_nrows(tensor), tensor->ne[0],
                                nullptr);
        }
    }

  private:
    uint64_t state = 1;
};

// One attention of the engine's flash form, as its model graphs have it.
class Trial {
  public:
    Trial(ggml_backend_t used_engine, const MeasuredShape & shape, int64_t queries, int64_t tokens);

    bool usable() const { return memory != nullptr && unusable.empty(); }
    std::optional<double> by_engine() { return best_of(graph); }
    std::optional<double> by(const graph::NodeFunction & function);
    bool once(const graph::NodeFunction & function); // not measured
    const Attention & attention() const { return bound; }

  private:
    std::optional<double> best_of(ggml_cgraph * computed);
    void forget_caches();
    void hide_what_is_later(int64_t queries, int64_t tokens);

    ggml_backend_t engine;
    std::unique_ptr<ggml_context, FreeContext> context;
    std::unique_ptr<ggml_backend_buffer, FreeBuffer> memory;
    ggml_cgraph * graph = nullptr;
    ggml_tensor * mask = nullptr;
    std::vector<std::vector<char>> elsewhere{ 64 }; // by thread
    Attention bound;
    std::string unusable;
};

Trial::Trial(ggml_backend_t used_engine, const MeasuredShape & shape, int64_t queries, int64_t tokens)
    : engine(used_engine) {
    constexpr size_t tensors = 16;
    context.reset(ggml_init({ (tensors * ggml_tensor_overhead()) + ggml_graph_overhead(), nullptr, true }));
    if (!context) {
        return;
    }
    ggml_context * in = context.get();
    ggml_tensor * query = ggml_new_tensor_3d(in, GGML_TYPE_F32, shape.key_size, shape.heads, queries);
    ggml_tensor * key = ggml_new_tensor_3d(in, shape.key_type, shape.key_size, shape.kv_heads, tokens);
    ggml_tensor * value = ggml_new_tensor_3d(in, shape.value_type, shape.value_size, shape.kv_heads, tokens);
    mask = ggml_new_tensor_2d(in, GGML_TYPE_F16, tokens, queries);
    graph::AttentionSite site;
    site.query = ggml_permute(in, query, 0, 2, 1, 3);
    site.key = ggml_permute(in, key, 0, 2, 1, 3);
    site.value = ggml_permute(in, value, 0, 2, 1, 3);
    site.mask = mask;
    site.post_scale = 1.0F / std::sqrt(static_cast<float>(shape.key_size));
    ggml_tensor * output =
        ggml_flash_attn_ext(in, const_cast<ggml_tensor *>(site.query), const_cast<ggml_tensor *>(site.key),
                            const_cast<ggml_tensor *>(site.value), mask, site.post_scale, 0.0F, 0.0F);
    site.output = output;
    graph = ggml_new_graph(in);
    ggml_build_forward_expand(graph, output);
    memory.reset(ggml_backend_alloc_ctx_tensors(in, engine));
    if (!memory) {
        return;
    }
    Noise noise;
    noise.fill(query, query_size);
    noise.fill(key, 1.0F);
    noise.fill(value, 1.0F);
    hide_what_is_later(queries, tokens);
    unusable = graph::bind_attention(site, bound);
}

void Trial::hide_what_is_later(int64_t queries, int64_t tokens) {
    auto * values = static_cast<ggml_fp16_t *>(mask->data);
    const ggml_fp16_t hidden = ggml_fp32_to_fp16(-std::numeric_limits<float>::infinity());
    for (int64_t q = 0; q < queries; q++) {
        for (int64_t t = 0; t < tokens; t++) {
            values[(q * tokens) + t] = t <= tokens - queries + q ? ggml_fp16_t(0) : hidden;
        }
    }
}

// The least of some: whatever else the machine did made it longer. The first one makes room and doesn't count.
std::optional<double> Trial::best_of(ggml_cgraph * computed) {
    double best = std::numeric_limits<double>::infinity();
    double sum = 0.0;
    for (int round = 0; round < fewest_rounds || (round < most_rounds && sum < enough_seconds); round++) {
        forget_caches();
        const int64_t start = ggml_time_us();
        if (ggml_backend_graph_compute(engine, computed) != GGML_STATUS_SUCCESS) {
            return std::nullopt;
        }
        const double seconds = static_cast<double>(std::max<int64_t>(1, ggml_time_us() - start)) * 1e-6;
        best = round == 0 ? best : std::min(best, seconds);
        sum += seconds;
    }
    return best;
}

bool Trial::once(const graph::NodeFunction & function) {
    graph::Shadow shadow(*graph, { { { graph->n_nodes - 1 }, function } });
    return ggml_backend_graph_compute(engine, shadow.graph()) == GGML_STATUS_SUCCESS;
}

// In a model every other layer is computed before this one's turn comes again.
void Trial::forget_caches() {
    once([this](int part, int) {
        if (static_cast<size_t>(part) < elsewhere.size()) {
            elsewhere[static_cast<size_t>(part)].assign(bytes_elsewhere, char(part));
        }
        return true;
    });
}

std::optional<double> Trial::by(const graph::NodeFunction & function) {
    graph::Shadow shadow(*graph, { { { graph->n_nodes - 1 }, function } });
    const std::optional<double> seconds = best_of(shadow.graph());
    return shadow.finish().failures == 0 ? seconds : std::nullopt;
}

std::optional<double> by_our_kernels(Trial & trial, int threads) {
    attend::ExactShared shared;
    std::vector<attend::ExactScratch> scratch(static_cast<size_t>(threads));
    return trial.by([&](int part, int parts) {
        return static_cast<size_t>(parts) <= scratch.size() &&
               attend::attend_exact(trial.attention(), part, parts, shared, scratch[static_cast<size_t>(part)]) !=
                   attend::ExactWay::failed;
    });
}

// A cell that comes under the cover, in seconds: the least of a few times.
std::optional<double> indexing_of_cell(Trial & trial, cover::LayerIndex & index, const attend::JointAttention & joint,
                                       const graph::NodeFunction & attend) {
    std::array<int64_t, 512> changed;
    std::iota(changed.begin(), changed.end(), 0);
    double least = std::numeric_limits<double>::infinity();
    for (int round = 0; round < fewest_rounds; round++) {
        index.cells_change(changed);
        const double before = joint.times().seconds(attend::Phase::indexing);
        if (!trial.once(attend)) {
            return std::nullopt;
        }
        least = std::min(least, joint.times().seconds(attend::Phase::indexing) - before);
    }
    return least / static_cast<double>(changed.size());
}

// Indexing the queries' own cells included.
std::optional<double> on_a_cover(Trial & trial, const MeasuredShape & shape) {
    const Attention & a = trial.attention();
    if (attend::JointAttention::objection(a) != nullptr) {
        return std::numeric_limits<float>::max();
    }
    cover::Cells cells;
    cells.kv_heads = shape.kv_heads;
    cells.key_size = shape.key_size;
    cells.value_size = shape.value_size;
    cover::LayerIndex index(cells, {});
    cover::LayerIndex * const indexes[] = { &index };
    attend::JointAttention joint;
    const graph::NodeFunction attend = [&](int part, int parts) {
        return joint.attend(a, indexes, usual_epsilon, part, parts) != attend::JointAttention::Result::failed;
    };
    const std::optional<double> seconds = trial.by(attend);
    const std::optional<double> of_cell = indexing_of_cell(trial, index, joint, attend);
    return seconds && of_cell ? std::optional(*seconds + (*of_cell * static_cast<double>(a.queries))) : std::nullopt;
}

} // namespace

std::string MeasuredShape::key(int threads) const {
    return std::to_string(heads) + "/" + std::to_string(kv_heads) + " heads of " + std::to_string(key_size) + "/" +
           std::to_string(value_size) + ", " + ggml_type_name(key_type) + "/" + ggml_type_name(value_type) + ", " +
           std::to_string(threads) + (threads == 1 ? " thread" : " threads");
}

int threads_of(ggml_backend_t engine) {
    const MeasuredShape least = { 1, 1, 32, 32 };
    Trial trial(engine, least, 1, 32);
    int threads = 0;
    if (trial.usable()) {
        trial.once([&](int part, int parts) {
            if (part == 0) {
                threads = parts;
            }
            return true;
        });
    }
    return threads;
}

std::optional<CostTable> measure_costs(ggml_backend_t engine, const MeasuredShape & shape, int threads) {
    CostTable table;
    for (size_t q = 0; q < CostTable::queries.size(); q++) {
        for (size_t t = 0; t < CostTable::tokens.size(); t++) {
            Trial trial(engine, shape, CostTable::queries[q], CostTable::tokens[t]);
            if (!trial.usable()) {
                return std::nullopt;
            }
            const auto by_engine = trial.by_engine();
            const auto by_kernels = by_our_kernels(trial, threads);
            const auto by_cover = on_a_cover(trial, shape);
            if (!by_engine || !by_kernels || !by_cover) {
                return std::nullopt;
            }
            table[Way::engine][q][t] = *by_engine;
            table[Way::fast][q][t] = *by_kernels;
            table[Way::joint][q][t] = *by_cover;
        }
    }
    return table.is_plausible() ? std::optional(table) : std::nullopt;
}

} // namespace cascade::backend
