#include "analysis/copy_error.h"

#include "analysis/figures.h"

#include <algorithm>
#include <cmath>

namespace cascade::analysis {

namespace {

void copy_floats(const void * stored, float * values, int64_t count) {
    std::copy_n(static_cast<const float *>(stored), count, values);
}

// Some rows of all heads, as floats one after the other.
Rows gather(const Rows & rows, std::span<const int32_t> chosen, int64_t heads, int64_t size,
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

// What each speaker may see of the representatives, by the model's own mask.
Rows gather_mask(const Attention & attention, std::span<const int32_t> speakers, const Cover & cover,
                 std::vector<float> & memory) {
    memory.clear();
    std::vector<float> row(static_cast<size_t>(attention.tokens));
    for (int64_t head = 0; head < attention.mask_heads; head++) {
        for (const int32_t speaker : speakers) {
            attention.mask.read(speaker, head, 0, attention.tokens, row.data());
            for (const int32_t representative : cover.representatives) {
                memory.push_back(row[static_cast<size_t>(representative)]);
            }
        }
    }
    Rows gathered;
    gathered.base = reinterpret_cast<const char *>(memory.data());
    gathered.row_stride = cover.representatives.size() * sizeof(float);
    gathered.head_stride = speakers.size() * gathered.row_stride;
    gathered.to_float = copy_floats;
    return gathered;
}

const float * output_of(const Attention & attention, int64_t query, int64_t head) {
    return reinterpret_cast<const float *>(attention.out + (static_cast<size_t>(query) * attention.out_query_stride) +
                                           (static_cast<size_t>(head) * attention.out_head_stride));
}

double relative_difference(const Attention & copied, const Attention & own, std::span<const int32_t> sample) {
    double difference = 0.0;
    double norm = 0.0;
    for (size_t i = 0; i < sample.size(); i++) {
        for (int64_t head = 0; head < own.heads; head++) {
            const float * a = output_of(copied, static_cast<int64_t>(i), head);
            const float * b = output_of(own, sample[i], head);
            for (int64_t k = 0; k < own.value_size; k++) {
                difference += (static_cast<double>(a[k]) - b[k]) * (static_cast<double>(a[k]) - b[k]);
                norm += static_cast<double>(b[k]) * b[k];
            }
        }
    }
    if (norm > 0.0) {
        return std::sqrt(difference / norm);
    }
    return difference == 0.0 ? 0.0 : not_measured;
}

} // namespace

std::vector<int32_t> spread_sample(int64_t tokens, int64_t count) {
    std::vector<int32_t> sample;
    count = std::min(count, tokens);
    sample.reserve(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; i++) {
        sample.push_back(static_cast<int32_t>(((2 * i) + 1) * tokens / (2 * count)));
    }
    return sample;
}

double copy_error(const Attention & own, const Cover & cover, std::span<const int32_t> sample, Team & team) {
    std::vector<int32_t> speakers;
    for (const int32_t token : sample) {
        speakers.push_back(cover.assigned[static_cast<size_t>(token)]);
        if (speakers.back() < 0) {
            return not_measured;
        }
    }
    Attention copied = own;
    copied.queries = static_cast<int64_t>(speakers.size());
    copied.tokens = cover.size();
    std::vector<float> query;
    std::vector<float> key;
    std::vector<float> value;
    std::vector<float> mask;
    copied.query = gather(own.query, speakers, own.heads, own.key_size, query);
    copied.key = gather(own.key, cover.representatives, own.kv_heads, own.key_size, key);
    copied.value = gather(own.value, cover.representatives, own.kv_heads, own.value_size, value);
    if (own.mask.base != nullptr) {
        copied.mask = gather_mask(own, speakers, cover, mask);
    }
    std::vector<float> out(speakers.size() * static_cast<size_t>(own.heads * own.value_size));
    copied.out = reinterpret_cast<char *>(out.data());
    copied.out_head_stride = static_cast<size_t>(own.value_size) * sizeof(float);
    copied.out_query_stride = static_cast<size_t>(own.heads) * copied.out_head_stride;
    std::vector<AttentionScratch> scratch(static_cast<size_t>(team.size()));
    team.run(team.size(), [&](int64_t part) {
        attend_reference(copied, static_cast<int>(part), team.size(), scratch[static_cast<size_t>(part)]);
    });
    return relative_difference(copied, own, sample);
}

} // namespace cascade::analysis
