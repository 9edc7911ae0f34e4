#include "graph/tensor.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>

namespace cascade::graph {

namespace {

std::optional<int> number_at(std::string_view text) {
    int number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || number < 0) {
        return std::nullopt;
    }
    return number;
}

std::optional<int> number_after(std::string_view name, std::string_view mark) {
    const size_t at = name.rfind(mark);
    return at == std::string_view::npos ? std::nullopt : number_at(name.substr(at + mark.size()));
}

void copy_floats(const void * stored, float * values, int64_t n) {
    std::memcpy(values, stored, static_cast<size_t>(n) * sizeof(float));
}

// Blocks of 32 values share a scale of amax / 127, stored as half a float.
void round_to_q8(float * values, int64_t n) {
    constexpr int block = 32;
    for (int64_t start = 0; start < n; start += block) {
        const int64_t end = std::min(start + block, n);
        float largest = 0.0F;
        for (int64_t i = start; i < end; i++) {
            largest = std::max(largest, std::abs(values[i]));
        }
        const float step = largest / 127.0F;
        const float inverse = step != 0.0F ? 1.0F / step : 0.0F;
        const float stored = ggml_fp16_to_fp32(ggml_fp32_to_fp16(step));
        for (int64_t i = start; i < end; i++) {
            values[i] = std::round(values[i] * inverse) * stored;
        }
    }
}

} // namespace

const ggml_tensor * root_of(const ggml_tensor * tensor) {
    for (int steps = 0; steps < longest_walk; steps++) {
        if (tensor == nullptr || tensor->view_src == nullptr) {
            return tensor;
        }
        tensor = tensor->view_src;
    }
    return nullptr;
}

bool is_view_op(const ggml_tensor * tensor) {
    return tensor->op == GGML_OP_RESHAPE || tensor->op == GGML_OP_VIEW || tensor->op == GGML_OP_PERMUTE ||
           tensor->op == GGML_OP_TRANSPOSE;
}

const ggml_tensor * skip_views(const ggml_tensor * tensor) {
    for (int steps = 0; steps < longest_walk; steps++) {
        if (tensor == nullptr || !is_view_op(tensor)) {
            return tensor;
        }
        tensor = tensor->src[0];
    }
    return nullptr;
}

bool is_leaf(const ggml_tensor * tensor) { return tensor != nullptr && tensor->op == GGML_OP_NONE; }

int layer_in_name(std::string_view name) {
    if (name.starts_with("blk.")) {
        return number_at(name.substr(4)).value_or(-1);
    }
    if (name.starts_with("cache_")) {
        return number_after(name, "_l").value_or(-1);
    }
    return number_after(name, "-").value_or(-1);
}

float float_param(const ggml_tensor * tensor, int index) {
    float value = 0.0F;
    std::memcpy(&value, tensor->op_params + index, sizeof(value));
    return value;
}

int int_param(const ggml_tensor * tensor, int index) { return tensor->op_params[index]; }

bool overlap(const ggml_tensor * a, const ggml_tensor * b) {
    const auto * a0 = static_cast<const char *>(a->data);
    const auto * b0 = static_cast<const char *>(b->data);
    return a0 != nullptr && b0 != nullptr && a0 < b0 + ggml_nbytes(b) && b0 < a0 + ggml_nbytes(a);
}

ToFloat to_float(ggml_type type) {
    if (type < 0 || type >= GGML_TYPE_COUNT) {
        return nullptr;
    }
    return type == GGML_TYPE_F32 ? copy_floats : ggml_get_type_traits(type)->to_float;
}

Round query_rounding(ggml_type key_type) { return ggml_is_quantized(key_type) ? round_to_q8 : nullptr; }

} // namespace cascade::graph
