// Reading a graph: finds its linear maps, cache writes and attention, and puts them together into layers.
#include "graph/reader.h"
#include "graph/tensor.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace cascade::graph {

namespace {

bool is_hadamard(const ggml_tensor * tensor) {
    return tensor->op == GGML_OP_MUL_MAT && int_param(tensor, 1) == GGML_HINT_SRC0_IS_HADAMARD;
}

// Recurrent state and other sequence mixing that is no attention: named, so that nobody takes silence for coverage.
bool mixes_tokens_otherwise(ggml_op op) {
    switch (op) {
    case GGML_OP_SSM_CONV:
    case GGML_OP_SSM_SCAN:
    case GGML_OP_RWKV_WKV6:
    case GGML_OP_RWKV_WKV7:
    case GGML_OP_GATED_LINEAR_ATTN:
    case GGML_OP_GATED_DELTA_NET:
        return true;
    default:
        return false;
    }
}

// The norm whose scaled and shifted output this is; nullptr: it is something else (models that normalise later).
const ggml_tensor * norm_behind(const ggml_tensor * tensor) {
    for (int steps = 0; tensor != nullptr && steps < longest_walk; steps++) {
        if (tensor->op == GGML_OP_NORM || tensor->op == GGML_OP_RMS_NORM) {
            return tensor;
        }
        const bool by_weight = (tensor->op == GGML_OP_MUL || tensor->op == GGML_OP_ADD) &&
                               (is_leaf(tensor->src[0]) || is_leaf(tensor->src[1]));
        tensor = by_weight || is_view_op(tensor) ? step_back(tensor) : nullptr;
    }
    return nullptr;
}

bool is_norm_weight(const ggml_tensor * tensor) {
    return is_leaf(tensor) && layer_in_name(tensor->name) >= 0 &&
           std::string_view(tensor->name).find("norm") != std::string_view::npos;
}

// The weight that a norm's output is multiplied with, going back to a node of op `end`; nullptr: none on that way.
const ggml_tensor * norm_weight_behind(const ggml_tensor * tensor, ggml_op end) {
    for (int steps = 0; tensor != nullptr && tensor->op != end && steps < longest_walk; steps++) {
        for (const ggml_tensor * side : { tensor->src[0], tensor->src[1] }) {
            if (tensor->op == GGML_OP_MUL && is_norm_weight(side)) {
                return side;
            }
        }
        tensor = step_back(tensor);
    }
    return nullptr;
}

// The tensor behind view ops that show all of it: one that shows a part is kept, as keys or values out of a fused
// projection are. nullptr where they have no end.
const ggml_tensor * same_rows_behind(const ggml_tensor * tensor) {
    for (int steps = 0; steps < longest_walk; steps++) {
        if (tensor == nullptr || !is_view_op(tensor) || tensor->src[0] == nullptr ||
            ggml_nelements(tensor->src[0]) != ggml_nelements(tensor)) {
            return tensor;
        }
        tensor = tensor->src[0];
    }
    return nullptr;
}

class Reader {
  public:
    explicit Reader(Nodes nodes) : index(nodes) {}

    ModelGraph read() {
        for (int node = 0; node < static_cast<int>(index.nodes.size()); node++) {
            if (index.nodes[static_cast<size_t>(node)] != nullptr) {
                read_node(node, index.nodes[static_cast<size_t>(node)]);
            }
        }
        for (auto & [number, layer] : layers) {
            attach_writes(layer);
            find_inputs(layer);
        }
        mark_sliding();
        report_unclaimed();
        for (auto & [number, layer] : layers) {
            result.layers.push_back(std::move(layer));
        }
        return std::move(result);
    }

  private:
    void read_node(int node, const ggml_tensor * tensor) {
        if (auto linear = read_linear(node, tensor)) {
            add_linear(std::move(*linear));
        } else if (tensor->op == GGML_OP_FLASH_ATTN_EXT || tensor->op == GGML_OP_SOFT_MAX) {
            add_attention(node, tensor);
        } else if (tensor->op == GGML_OP_SET_ROWS) {
            writes.push_back({ node, root_of(tensor), tensor->src[0], tensor->src[1] });
        } else if (tensor->op == GGML_OP_MUL_MAT || tensor->op == GGML_OP_MUL_MAT_ID) {
            unclaimed.push_back(node);
        } else if (mixes_tokens_otherwise(tensor->op)) {
            report(node, "mixes tokens by something else than attention");
        }
    }

    void add_linear(LinearSite site) {
        const auto group = input_groups.emplace(skip_views(site.input), static_cast<int>(input_groups.size()));
        site.input_group = group.first->second;
        const int layer = layer_in_name(site.weight->name);
        (layer < 0 ? result.outside : layer_at(layer).linear).push_back(std::move(site));
    }

    void add_attention(int node, const ggml_tensor * tensor) {
        std::string why;
        auto site = read_attention(index, node, why);
        if (!site) {
            if (!why.empty() || tensor->op == GGML_OP_FLASH_ATTN_EXT) {
                report(node, why);
            }
            return;
        }
        const int layer = layer_of(*site);
        if (layer < 0) {
            report(node, "attention of no known layer");
            return;
        }
        claimed.insert(claimed.end(), site->nodes.begin(), site->nodes.end());
        layer_at(layer).attention.push_back(std::move(*site));
    }

    // The query's weight tells; a layer may read another layer's cache, so the cache's name comes second.
    static int layer_of(const AttentionSite & site) {
        const ggml_tensor * projection = find_back(site.query, GGML_OP_MUL_MAT);
        const ggml_tensor * weight = projection != nullptr ? weight_of(projection) : nullptr;
        if (weight != nullptr && layer_in_name(weight->name) >= 0) {
            return layer_in_name(weight->name);
        }
        return layer_in_name(site.uses_cache() ? site.key_cache->name : site.output->name);
    }

    Layer & layer_at(int number) {
        Layer & layer = layers[number];
        layer.index = number;
        return layer;
    }

    void attach_writes(Layer & layer) {
        for (const AttentionSite & site : layer.attention) {
            for (const CacheWrite & write : writes) {
                if (write.cache == nullptr) {
                    continue;
                }
                if (write.cache == site.key_cache) {
                    layer.key_writes.push_back(write);
                } else if (write.cache == site.value_cache) {
                    layer.value_writes.push_back(write);
                }
            }
        }
    }

    void find_inputs(Layer & layer) {
        if (layer.attention.empty()) {
            return;
        }
        const AttentionSite & site = layer.attention.front();
        const ggml_tensor * key = layer.key_writes.empty() ? site.key : layer.key_writes.front().rows;
        const ggml_tensor * value = layer.value_writes.empty() ? site.value : layer.value_writes.front().rows;
        if (!site.uses_cache() || !layer.key_writes.empty()) {
            const ggml_tensor * rotated = find_back(key, GGML_OP_ROPE);
            layer.post_rotary_key = rotated != nullptr ? rotated : same_rows_behind(key);
            layer.pre_rotary_key = rotated != nullptr ? rotated->src[0] : layer.post_rotary_key;
            layer.new_value = same_rows_behind(value);
        }
        const ggml_tensor * projection = find_back(site.query, GGML_OP_MUL_MAT);
        if (projection == nullptr || weight_of(projection) == nullptr) {
            return;
        }
        layer.normalised = projection->src[1];
        const ggml_tensor * norm = norm_behind(layer.normalised);
        layer.residual = norm != nullptr ? norm->src[0] : layer.normalised;
        layer.norm_weight = norm != nullptr ? norm_weight_behind(layer.normalised, norm->op)
                                            : norm_weight_behind(site.query, GGML_OP_MUL_MAT);
    }

    void mark_sliding() {
        int64_t most = 0;
        for (const auto & [number, layer] : layers) {
            for (const AttentionSite & site : layer.attention) {
                most = std::max(most, site.uses_cache() ? site.key_cache->ne[1] : 0);
            }
        }
        for (auto & [number, layer] : layers) {
            for (const AttentionSite & site : layer.attention) {
                layer.sliding = layer.sliding || (site.uses_cache() && site.key_cache->ne[1] < most);
            }
        }
    }

    void report_unclaimed() {
        std::sort(claimed.begin(), claimed.end());
        for (const int node : unclaimed) {
            const bool known = std::binary_search(claimed.begin(), claimed.end(), node) ||
                               is_hadamard(index.nodes[static_cast<size_t>(node)]);
            if (!known) {
                report(node, "product of two computed tensors");
            }
        }
        for (const CacheWrite & write : writes) {
            if (write.cache == nullptr || !is_read(write.cache)) {
                report(write.node, "writes a cache that no recognised attention reads");
            }
        }
    }

    bool is_read(const ggml_tensor * cache) const {
        for (const auto & [number, layer] : layers) {
            for (const AttentionSite & site : layer.attention) {
                if (site.key_cache == cache || site.value_cache == cache) {
                    return true;
                }
            }
        }
        return false;
    }

    void report(int node, std::string why) {
        const ggml_tensor * tensor = index.nodes[static_cast<size_t>(node)];
        result.unrecognised.push_back({ node, tensor->name, ggml_op_name(tensor->op), std::move(why) });
    }

    NodeIndex index;
    ModelGraph result;
    std::map<int, Layer> layers;
    std::map<const ggml_tensor *, int> input_groups;
    std::vector<CacheWrite> writes;
    std::vector<int> unclaimed; // products without a weight
    std::vector<int> claimed;   // nodes of recognised attention
};

} // namespace

NodeIndex::NodeIndex(Nodes graph_nodes) : nodes(graph_nodes), reader_counts(graph_nodes.size(), 0) {
    positions.reserve(nodes.size());
    for (size_t i = 0; i < nodes.size(); i++) {
        positions.emplace(nodes[i], static_cast<int>(i));
    }
    for (const ggml_tensor * node : nodes) {
        for (int i = 0; node != nullptr && i < GGML_MAX_SRC; i++) {
            const int at = node->src[i] != nullptr ? position(node->src[i]) : -1;
            if (at >= 0) {
                reader_counts[static_cast<size_t>(at)]++;
            }
        }
    }
}

int NodeIndex::position(const ggml_tensor * tensor) const {
    const auto found = positions.find(tensor);
    return found == positions.end() ? -1 : found->second;
}

int NodeIndex::readers(const ggml_tensor * tensor) const {
    const int at = position(tensor);
    return at < 0 ? 0 : reader_counts[static_cast<size_t>(at)];
}

const ggml_tensor * NodeIndex::next_reader(int after, ggml_op op, const ggml_tensor * source) const {
    constexpr int reach = 16;
    const int end = std::min(after + 1 + reach, static_cast<int>(nodes.size()));
    for (int i = after + 1; i < end; i++) {
        const ggml_tensor * node = nodes[static_cast<size_t>(i)];
        if (node != nullptr && node->op == op && (node->src[0] == source || node->src[1] == source)) {
            return node;
        }
    }
    return nullptr;
}

const ggml_tensor * step_back(const ggml_tensor * tensor) {
    switch (tensor->op) {
    case GGML_OP_RESHAPE:
    case GGML_OP_VIEW:
    case GGML_OP_PERMUTE:
    case GGML_OP_TRANSPOSE:
    case GGML_OP_CONT:
    case GGML_OP_CPY:
    case GGML_OP_DUP:
    case GGML_OP_PAD:
    case GGML_OP_SCALE:
    case GGML_OP_CLAMP:
    case GGML_OP_ROPE:
    case GGML_OP_NORM:
    case GGML_OP_RMS_NORM:
    case GGML_OP_L2_NORM:
    case GGML_OP_SET_ROWS:
        return tensor->src[0];
    case GGML_OP_ADD:
    case GGML_OP_MUL: // the other side is a bias or a norm's weight
        return is_leaf(tensor->src[0]) ? tensor->src[1] : tensor->src[0];
    case GGML_OP_MUL_MAT:
        return is_hadamard(tensor) ? tensor->src[1] : nullptr;
    default:
        return nullptr;
    }
}

const ggml_tensor * find_back(const ggml_tensor * tensor, ggml_op op) {
    for (int steps = 0; tensor != nullptr && steps < longest_walk; steps++) {
        if (tensor->op == op && !is_hadamard(tensor)) {
            return tensor;
        }
        tensor = step_back(tensor);
    }
    return nullptr;
}

ModelGraph read_graph(Nodes nodes) { return Reader(nodes).read(); }

} // namespace cascade::graph
