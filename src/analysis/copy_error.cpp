#include "analysis/copy_error.h"

#include "analysis/figures.h"
#include "attend/gathered.h"

#include <algorithm>
#include <cmath>

namespace cascade::analysis {

namespace {

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
    gathered.to_float = attend::copy_floats;
    return gathered;
}

double relative_difference(const Attention & copied, const Attention & own, std::span<const int32_t> sample) {
    double difference = 0.0;
    double norm = 0.0;
    for (size_t i = 0; i < sample.size(); i++) {
        for (int64_t head = 0; head < own.heads; head++) {
            const float * a = copied.output(static_cast<int64_t>(i), head, 0);
            const float * b = own.output(sample[i], head, 0);
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
    copied.query = attend::gather(own.query, speakers, own.heads, own.key_size, query);
    copied.key = attend::gather(own.key, cover.representatives, own.kv_heads, own.key_size, key);
    copied.value = attend::gather(own.value, cover.representatives, own.kv_heads, own.value_size, value);
    if (own.mask.base != nullptr) {
        copied.mask = gather_mask(own, speakers, cover, mask);
    }
    std::vector<float> out(speakers.size() * static_cast<size_t>(own.heads * own.value_size));
    attend::set_output(copied, out.data());
    attend::attend_all(copied, team);
    return relative_difference(copied, own, sample);
}

} // namespace cascade::analysis
