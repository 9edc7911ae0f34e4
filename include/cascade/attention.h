// One attention op of a model, in arrays and numbers only: no model, no engine.
//
// Shapes: queries x heads x streams on one side, tokens x kv_heads x streams on the other; heads is a multiple of
// kv_heads, and query head h reads key head h / (heads / kv_heads). A stream is an independent batch entry.
// All strides are in bytes. Visibility is only what the mask says: -inf hides a token from a query.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cascade {

// Converts n consecutive stored values to float.
using ToFloat = void (*)(const void * stored, float * values, int64_t n);

// Rounds n values in place to another format's precision.
using Round = void (*)(float * values, int64_t n);

// Formats that vector instructions convert by themselves; all others go through ToFloat.
enum class Format : uint8_t { other, f32, f16, bf16 };

// Stored rows: value i of a row at base + row * row_stride + head * head_stride + stream * stream_stride.
struct Rows {
    const char * base = nullptr;
    size_t row_stride = 0;
    size_t head_stride = 0;
    size_t stream_stride = 0;
    size_t value_stride = 0; // 0: the row is packed, and converts in one go (the only way for block formats)
    ToFloat to_float = nullptr;
    Format format = Format::other; // what to_float reads, where that is known

    const char * start(int64_t row, int64_t head, int64_t stream) const {
        return base + (static_cast<size_t>(row) * row_stride) + (static_cast<size_t>(head) * head_stride) +
               (static_cast<size_t>(stream) * stream_stride);
    }

    // Writes the n values of one row.
    void read(int64_t row, int64_t head, int64_t stream, int64_t n, float * values) const;
};

struct Attention {
    int64_t queries = 0;
    int64_t tokens = 0;
    int64_t heads = 0;
    int64_t kv_heads = 0;
    int64_t streams = 1;
    int64_t key_size = 0;   // values of a query or key
    int64_t value_size = 0; // values of a value or output

    Rows query; // rows: queries
    Rows key;   // rows: tokens
    Rows value; // rows: tokens

    Rows mask; // rows: queries, tokens values each; mask.base == nullptr: everything is visible
    int64_t mask_heads = 1;
    int64_t mask_streams = 1;

    Round round_query = nullptr; // quantised keys are multiplied with a query rounded to 8 bits; nullptr: as it is

    const float * sinks = nullptr; // one logit a head that takes part in the softmax and has no value

    // logit = post_scale * cap(pre_scale * <q, k>) + slope(head) * mask, cap(x) = soft_cap * tanh(x), or x where it is
    // 0
    float pre_scale = 1.0F;
    float soft_cap = 0.0F;
    float post_scale = 1.0F;
    float max_bias = 0.0F; // ALiBi; 0: slope 1 for every head

    char * out = nullptr; // value_size floats for each query, head and stream
    size_t out_query_stride = 0;
    size_t out_head_stride = 0;
    size_t out_stream_stride = 0;

    float * output(int64_t query_index, int64_t head, int64_t stream) const {
        return reinterpret_cast<float *>(out + (static_cast<size_t>(query_index) * out_query_stride) +
                                         (static_cast<size_t>(head) * out_head_stride) +
                                         (static_cast<size_t>(stream) * out_stream_stride));
    }
};

// ALiBi's slope of a head, as the engine defines it; 1 where max_bias is 0.
float alibi_slope(float max_bias, int64_t heads, int64_t head);

// Memory that one thread brings along; grows as needed and may throw std::bad_alloc doing so.
struct AttentionScratch {
    std::vector<float> keys;
    std::vector<float> values;
    std::vector<float> logits;
    std::vector<float> row;
};

// The oracle: plain attention over all tokens, in float with sums in double. Computes the queries that belong to
// part `part` of `parts`; parts are independent and their results do not depend on `parts`.
void attend_reference(const Attention & attention, int part, int parts, AttentionScratch & scratch);

} // namespace cascade
