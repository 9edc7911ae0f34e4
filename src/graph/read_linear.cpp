// Finding the nodes that multiply a weight.
#include "graph/reader.h"
#include "graph/tensor.h"

#include <string_view>

namespace cascade::graph {

namespace {

constexpr std::string_view weight_suffix = ".weight";

// "blk.3.attn_q.weight" -> "attn_q"
std::string site_name(std::string_view weight) {
    weight.remove_suffix(weight_suffix.size());
    if (weight.starts_with("blk.")) {
        const size_t dot = weight.find('.', 4);
        weight = dot == std::string_view::npos ? weight : weight.substr(dot + 1);
    }
    return std::string(weight);
}

} // namespace

const ggml_tensor * weight_of(const ggml_tensor * node) {
    if (node->op != GGML_OP_MUL_MAT && node->op != GGML_OP_MUL_MAT_ID) {
        return nullptr;
    }
    const ggml_tensor * root = root_of(node->src[0]);
    return is_leaf(root) && std::string_view(root->name).ends_with(weight_suffix) ? root : nullptr;
}

std::optional<LinearSite> read_linear(int node, const ggml_tensor * tensor) {
    const ggml_tensor * weight = weight_of(tensor);
    if (weight == nullptr) {
        return std::nullopt;
    }
    LinearSite site;
    site.node = node;
    site.name = site_name(weight->name);
    site.weight = weight;
    site.input = tensor->src[1];
    site.routed = tensor->op == GGML_OP_MUL_MAT_ID;
    return site;
}

} // namespace cascade::graph
