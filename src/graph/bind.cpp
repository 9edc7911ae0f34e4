#include "graph/bind.h"

#include "graph/tensor.h"

#include "ggml-backend.h"

namespace cascade::graph {

namespace {

bool readable(const ggml_tensor * tensor) {
    const ggml_tensor * root = root_of(tensor);
    return tensor->data != nullptr && root != nullptr && root->buffer != nullptr &&
           ggml_backend_buffer_is_host(root->buffer);
}

Format format_of(ggml_type type) {
    switch (type) {
    case GGML_TYPE_F32:
        return Format::f32;
    case GGML_TYPE_F16:
        return Format::f16;
    case GGML_TYPE_BF16:
        return Format::bf16;
    default:
        return Format::other;
    }
}

// Rows along dimension `row`, their values along dimension `value`; heads and streams are dimensions 2 and 3.
bool bind_rows(const ggml_tensor * tensor, int row, int value, Rows & rows) {
    rows.to_float = to_float(tensor->type);
    if (rows.to_float == nullptr) {
        return false;
    }
    rows.format = format_of(tensor->type);
    rows.base = static_cast<const char *>(tensor->data);
    rows.row_stride = tensor->nb[row];
    rows.head_stride = tensor->nb[2];
    rows.stream_stride = tensor->nb[3];
    rows.value_stride = tensor->nb[value] == ggml_type_size(tensor->type) ? 0 : tensor->nb[value];
    return ggml_blck_size(tensor->type) == 1 || (value == 0 && rows.value_stride == 0);
}

// The reference holds a head's keys and values as floats: their number must be one that memory can have.
bool countable(const AttentionSite & site) {
    constexpr int64_t most = int64_t(1) << 40;
    const int64_t sizes[] = { site.key_size(), site.value_size(), site.queries(), site.heads(), site.query->ne[3] };
    for (const int64_t size : sizes) {
        int64_t product = 0;
        if (size < 0 || site.tokens() < 0 || __builtin_mul_overflow(size, site.tokens(), &product) || product > most) {
            return false;
        }
    }
    return true;
}

std::string bind_mask(const ggml_tensor * mask, Attention & a) {
    if (mask == nullptr) {
        return a.max_bias > 0.0F ? "ALiBi without a mask" : "";
    }
    if (!readable(mask) || !bind_rows(mask, 1, 0, a.mask)) {
        return "mask can't be read";
    }
    if (mask->ne[0] != a.tokens || mask->ne[1] < a.queries || mask->ne[2] <= 0 || mask->ne[3] <= 0) {
        return "mask has another size";
    }
    a.mask_heads = mask->ne[2];
    a.mask_streams = mask->ne[3];
    return {};
}

void bind_output(const AttentionSite & site, Attention & a) {
    const ggml_tensor * output = site.output;
    const bool flash = site.form == AttentionForm::flash;
    a.out = static_cast<char *>(output->data);
    a.out_query_stride = flash ? output->nb[2] : output->nb[1];
    a.out_head_stride = flash ? output->nb[1] : output->nb[2];
    a.out_stream_stride = output->nb[3];
}

} // namespace

std::string bind_attention(const AttentionSite & site, Attention & a) {
    if (site.bias != nullptr) {
        return "logits have a bias";
    }
    if (!countable(site)) {
        return "sizes are out of range";
    }
    if (!readable(site.query) || !readable(site.key) || !readable(site.value) || !readable(site.output)) {
        return "memory is not the host's";
    }
    if (site.query->type != GGML_TYPE_F32 || site.output->type != GGML_TYPE_F32 ||
        site.output->nb[0] != sizeof(float)) {
        return "query or output isn't float";
    }
    const bool flash = site.form == AttentionForm::flash;
    if (!bind_rows(site.query, 1, 0, a.query) || !bind_rows(site.key, 1, 0, a.key) ||
        !bind_rows(site.value, flash ? 1 : 0, flash ? 0 : 1, a.value)) {
        return "keys or values are of a type that can't be read";
    }
    if (site.sinks != nullptr && (!readable(site.sinks) || site.sinks->type != GGML_TYPE_F32 ||
                                  site.sinks->ne[0] != site.heads() || site.sinks->nb[0] != sizeof(float))) {
        return "sinks can't be read";
    }
    a.queries = site.queries();
    a.tokens = site.tokens();
    a.heads = site.heads();
    a.kv_heads = site.kv_heads();
    a.streams = site.query->ne[3];
    a.key_size = site.key_size();
    a.value_size = site.value_size();
    a.sinks = site.sinks != nullptr ? static_cast<const float *>(site.sinks->data) : nullptr;
    a.round_query = query_rounding(site.key->type);
    a.pre_scale = site.pre_scale;
    a.soft_cap = site.soft_cap;
    a.post_scale = site.post_scale;
    a.max_bias = site.max_bias;
    bind_output(site, a);
    return bind_mask(site.mask, a);
}

} // namespace cascade::graph
