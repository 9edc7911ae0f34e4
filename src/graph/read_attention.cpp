// Finding attention in a graph, in both of the engine's forms.
#include "graph/reader.h"
#include "graph/tensor.h"

#include <algorithm>
#include <functional>
#include <string_view>

namespace cascade::graph {

namespace {

// op_params of the engine's FLASH_ATTN_EXT, SOFT_MAX and SCALE nodes
enum FlashParam { flash_scale = 0, flash_max_bias = 1, flash_soft_cap = 2, flash_n_kv_max = 4 };
enum SoftmaxParam { softmax_scale = 0, softmax_max_bias = 1 };
enum ScaleParam { scale_factor = 0, scale_bias = 1 };

const ggml_tensor * cache_behind(const ggml_tensor * tensor) {
    const ggml_tensor * root = root_of(tensor);
    return is_leaf(root) && std::string_view(root->name).starts_with("cache_") ? root : nullptr;
}

AttentionSite flash_site(int node, const ggml_tensor * flash) {
    AttentionSite site;
    site.form = AttentionForm::flash;
    site.nodes = { node };
    site.query = flash->src[0];
    site.key = flash->src[1];
    site.value = flash->src[2];
    site.mask = flash->src[3];
    site.sinks = flash->src[4];
    site.output = flash;
    site.pre_scale = float_param(flash, flash_scale);
    site.max_bias = float_param(flash, flash_max_bias);
    site.soft_cap = float_param(flash, flash_soft_cap);
    if (site.soft_cap != 0.0F) {
        site.pre_scale /= site.soft_cap;
    }
    return site;
}

bool is_scale(const ggml_tensor * tensor) {
    return tensor != nullptr && tensor->op == GGML_OP_SCALE && float_param(tensor, scale_bias) == 0.0F;
}

bool is_tanh(const ggml_tensor * tensor) {
    return tensor != nullptr && tensor->op == GGML_OP_UNARY && ggml_get_unary_op(tensor) == GGML_UNARY_OP_TANH;
}

// Walks from the softmax back to the product of keys and queries, noting what the logits go through. Fills the site's
// nodes in reverse order. nullptr: another pattern.
const ggml_tensor * logits_product(const NodeIndex & index, const ggml_tensor * softmax, AttentionSite & site) {
    const ggml_tensor * at = softmax->src[0];
    auto pass = [&] {
        site.nodes.push_back(index.position(at));
        at = at->src[0];
    };
    if (at != nullptr && at->op == GGML_OP_ADD) {
        site.bias = at->src[1];
        pass();
    }
    if (is_scale(at) && is_tanh(at->src[0]) && is_scale(at->src[0]->src[0])) {
        site.soft_cap = float_param(at, scale_factor);
        pass();
        pass();
        site.pre_scale = float_param(at, scale_factor);
        pass();
    }
    if (at == nullptr || at->op != GGML_OP_MUL_MAT || weight_of(at) != nullptr) {
        return nullptr;
    }
    site.nodes.push_back(index.position(at));
    return at;
}

std::optional<AttentionSite> softmax_site(const NodeIndex & index, int node, const ggml_tensor * softmax,
                                          std::string & why) {
    AttentionSite site;
    site.form = AttentionForm::softmax;
    site.post_scale = float_param(softmax, softmax_scale);
    site.max_bias = float_param(softmax, softmax_max_bias);
    site.mask = softmax->src[1];
    site.sinks = softmax->src[2];
    const ggml_tensor * product = logits_product(index, softmax, site);
    if (product == nullptr) {
        return std::nullopt; // a router's softmax, or something else that is no attention
    }
    const ggml_tensor * output = index.next_reader(node, GGML_OP_MUL_MAT, softmax);
    if (output == nullptr || output->src[1] != softmax) {
        why = "no product with values follows";
        return std::nullopt;
    }
    std::reverse(site.nodes.begin(), site.nodes.end());
    site.nodes.push_back(node);
    site.nodes.push_back(index.position(output));
    site.key = product->src[0];
    site.query = product->src[1];
    site.value = output->src[0];
    site.output = output;
    return site;
}

bool is_private(const NodeIndex & index, int node) {
    const ggml_tensor * tensor = index.nodes[static_cast<size_t>(node)];
    return index.readers(tensor) == 1 && (tensor->flags & GGML_TENSOR_FLAG_OUTPUT) == 0;
}

// What both forms must satisfy; an empty answer is good.
std::string oddness(const NodeIndex & index, const AttentionSite & site) {
    if (site.query == nullptr || site.key == nullptr || site.value == nullptr) {
        return "query, key or value is missing";
    }
    if (std::any_of(site.nodes.begin(), site.nodes.end(), [](int node) { return node < 0; })) {
        return "part of it is outside this graph";
    }
    if (std::adjacent_find(site.nodes.begin(), site.nodes.end(), std::greater_equal<>()) != site.nodes.end()) {
        return "its nodes stand in another order";
    }
    for (size_t i = 0; i + 1 < site.nodes.size(); i++) {
        if (!is_private(index, site.nodes[i])) {
            return "an intermediate result is read elsewhere";
        }
    }
    const bool flash = site.form == AttentionForm::flash;
    const int64_t value_tokens = flash ? site.value->ne[1] : site.value->ne[0];
    const int64_t value_size = flash ? site.value->ne[0] : site.value->ne[1];
    if (site.key->ne[0] != site.query->ne[0] || value_tokens != site.key->ne[1] || value_size != site.output->ne[0]) {
        return "sizes of query, key and value don't fit";
    }
    if (site.kv_heads() <= 0 || site.heads() % site.kv_heads() != 0 || site.value->ne[2] != site.kv_heads()) {
        return "heads of key and value don't divide the query's";
    }
    if (site.query->ne[3] != site.key->ne[3] || site.query->ne[3] != site.value->ne[3]) {
        return "streams of query, key and value differ";
    }
    const int64_t * out = site.output->ne;
    if (out[flash ? 1 : 2] != site.heads() || out[flash ? 2 : 1] != site.queries() || out[3] != site.query->ne[3]) {
        return "output has another size";
    }
    if (flash && int_param(site.output, flash_n_kv_max) != 0) {
        return "sparse attention of the model's own";
    }
    return {};
}

} // namespace

std::optional<AttentionSite> read_attention(const NodeIndex & index, int node, std::string & why) {
    const ggml_tensor * tensor = index.nodes[static_cast<size_t>(node)];
    std::optional<AttentionSite> site;
    if (tensor->op == GGML_OP_FLASH_ATTN_EXT) {
        site = flash_site(node, tensor);
    } else if (tensor->op == GGML_OP_SOFT_MAX) {
        site = softmax_site(index, node, tensor, why);
    }
    if (!site) {
        return std::nullopt;
    }
    why = oddness(index, *site);
    if (!why.empty()) {
        return std::nullopt;
    }
    site->key_cache = cache_behind(site->key);
    site->value_cache = cache_behind(site->value);
    return site;
}

} // namespace cascade::graph
