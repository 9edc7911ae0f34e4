#include "attend/kernels/queries.h"

#include <algorithm>

namespace cascade::attend {

void read_row(const Kernel & ops, const Rows & rows, int64_t row, int64_t head, int64_t stream, int64_t n,
              float * values) {
    if (rows.format == Format::other || rows.value_stride != 0) {
        rows.read(row, head, stream, n, values);
        return;
    }
    ops.to_float(rows.format, rows.start(row, head, stream), n, values);
}

void QueryRows::read(int64_t r, float * out) const {
    read_row(ops(), a->query, query(r), head(r), in_stream, a->key_size, out);
    if (a->round_query != nullptr) {
        a->round_query(out, a->key_size);
    }
    const float scale = a->soft_cap != 0.0F ? a->pre_scale : a->pre_scale * a->post_scale * log2_e;
    std::transform(out, out + a->key_size, out, [scale](float value) { return value * scale; });
}

void QueryRows::fill(const Attention & attention, int64_t kv_head, int64_t stream, int64_t first_query, int64_t queries,
                     QueryLayout layout) {
    a = &attention;
    kernel_in_use = &kernel();
    kv = kv_head;
    in_stream = stream;
    first = first_query;
    group = a->heads / a->kv_heads;
    count = queries * group;
    slopes.resize(static_cast<size_t>(group));
    for (int64_t h = 0; h < group; h++) {
        slopes[static_cast<size_t>(h)] = log2_e * alibi_slope(a->max_bias, a->heads, head(h));
    }
    if (layout == QueryLayout::rows) {
        float * out = floats.need(count * step());
        std::fill_n(out, count * step(), 0.0F);
        for (int64_t r = 0; r < count; r++) {
            read(r, out + (r * step()));
        }
        return;
    }
    const int64_t in_pack = ops().rows;
    float * out = floats.need(packs() * in_pack * a->key_size);
    float * values = one_row.need(a->key_size);
    for (int64_t r = 0; r < packs() * in_pack; r++) {
        if (r < count) {
            read(r, values);
        } else {
            std::fill_n(values, a->key_size, 0.0F);
        }
        float * at = out + (r / in_pack * in_pack * a->key_size) + (r % in_pack);
        for (int64_t k = 0; k < a->key_size; k++) {
            at[k * in_pack] = values[k];
        }
    }
}

} // namespace cascade::attend
