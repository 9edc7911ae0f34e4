// Rows of an attention picked out, for attention on some tokens only.
#pragma once

#include "cascade/attention.h"
#include "cascade/team.h"

#include <algorithm>
#include <span>

namespace cascade::attend {

inline void copy_floats(const void * stored, float * values, int64_t count) {
    std::copy_n(static_cast<const float *>(stored), count, values);
}

// Some rows of all heads, as floats one after the other, which `memory` holds.
inline Rows gather(const Rows & rows, std::span<const int32_t> chosen, int64_t heads, int64_t size,
                   std::vector<float> & memory) {
    memory.resize(chosen.size() * static_cast<size_t>(heads * size));
    float * out = memory.data();
    for (const int32_t row : chosen) {
        for (int64_t head = 0; head < heads; head++, out += size) {
            rows.read(row, head, 0, size, out);
        }
    }
    Rows gathered;
    gathered.base = reinterpret_cast<const char *>(memory.data());
    gathered.row_stride = static_cast<size_t>(heads * size) * sizeof(float);
    gathered.head_stride = static_cast<size_t>(size) * sizeof(float);
    gathered.to_float = copy_floats;
    return gathered;
}

// A mask of floats, `columns` for each query.
inline Rows float_mask(const std::vector<float> & memory, int64_t columns) {
    Rows mask;
    mask.base = reinterpret_cast<const char *>(memory.data());
    mask.row_stride = static_cast<size_t>(columns) * sizeof(float);
    mask.to_float = copy_floats;
    return mask;
}

// Output of queries x heads x value_size floats.
inline void set_output(Attention & attention, float * out) {
    attention.out = reinterpret_cast<char *>(out);
    attention.out_head_stride = static_cast<size_t>(attention.value_size) * sizeof(float);
    attention.out_query_stride = static_cast<size_t>(attention.heads) * attention.out_head_stride;
}

// attend_reference, shared by a team.
inline void attend_all(const Attention & attention, Team & team) {
    std::vector<AttentionScratch> scratch(static_cast<size_t>(team.size()));
    team.run(team.size(), [&](int64_t part) {
        attend_reference(attention, static_cast<int>(part), team.size(), scratch[static_cast<size_t>(part)]);
    });
}

} // namespace cascade::attend
