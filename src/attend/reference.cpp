// Plain attention: the oracle of every faster path. Written to be read; the one concession to speed is that the
// keys and values of a head are converted to float once for all of a part's queries.
#include "cascade/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cascade {

namespace {

constexpr float hidden = -std::numeric_limits<float>::infinity();

float dot(const float * a, const float * b, int64_t n) {
    constexpr int lanes = 16;
    float sums[lanes] = {};
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        for (int lane = 0; lane < lanes; lane++) {
            sums[lane] += a[i + lane] * b[i + lane];
        }
    }
    double total = 0.0;
    for (const float sum : sums) {
        total += sum;
    }
    for (; i < n; i++) {
        total += static_cast<double>(a[i]) * b[i];
    }
    return static_cast<float>(total);
}

// Keys and values of one head and stream, as floats.
void read_head(const Attention & a, int64_t kv_head, int64_t stream, AttentionScratch & scratch) {
    scratch.keys.resize(static_cast<size_t>(a.tokens * a.key_size));
    scratch.values.resize(static_cast<size_t>(a.tokens * a.value_size));
    for (int64_t token = 0; token < a.tokens; token++) {
        a.key.read(token, kv_head, stream, a.key_size, scratch.keys.data() + token * a.key_size);
        a.value.read(token, kv_head, stream, a.value_size, scratch.values.data() + token * a.value_size);
    }
}

// Fills scratch.logits for one query; expects the mask's row in it, and the query in scratch.row.
void compute_logits(const Attention & a, float slope, AttentionScratch & scratch) {
    for (int64_t token = 0; token < a.tokens; token++) {
        float & logit = scratch.logits[static_cast<size_t>(token)];
        if (logit == hidden) {
            continue;
        }
        float x = a.pre_scale * dot(scratch.row.data(), scratch.keys.data() + token * a.key_size, a.key_size);
        if (a.soft_cap != 0.0F) {
            x = a.soft_cap * std::tanh(x);
        }
        logit = a.post_scale * x + slope * logit;
    }
}

// Softmax of the logits, then the weighted mean of the values. A query that sees nothing gets zeros.
void weigh_values(const Attention & a, const float * sink, AttentionScratch & scratch, float * out) {
    float largest = sink != nullptr ? *sink : hidden;
    for (const float logit : scratch.logits) {
        largest = std::max(largest, logit);
    }
    std::fill(out, out + a.value_size, 0.0F);
    if (largest == hidden) {
        return;
    }
    double total = sink != nullptr ? std::exp(*sink - largest) : 0.0;
    for (int64_t token = 0; token < a.tokens; token++) {
        const float logit = scratch.logits[static_cast<size_t>(token)];
        if (logit == hidden) {
            continue;
        }
        const float weight = std::exp(logit - largest);
        total += weight;
        const float * value = scratch.values.data() + token * a.value_size;
        for (int64_t i = 0; i < a.value_size; i++) {
            out[i] += weight * value[i];
        }
    }
    const auto inverse = static_cast<float>(1.0 / total);
    for (int64_t i = 0; i < a.value_size; i++) {
        out[i] *= inverse;
    }
}

} // namespace

void Rows::read(int64_t row, int64_t head, int64_t stream, int64_t n, float * values) const {
    const char * first = start(row, head, stream);
    if (value_stride == 0) {
        to_float(first, values, n);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        to_float(first + static_cast<size_t>(i) * value_stride, values + i, 1);
    }
}

float alibi_slope(float max_bias, int64_t heads, int64_t head) {
    if (max_bias <= 0.0F) {
        return 1.0F;
    }
    const auto power_of_two = static_cast<int64_t>(std::pow(2.0, std::floor(std::log2(static_cast<double>(heads)))));
    const double half = head < power_of_two ? 1.0 : 0.5;
    const auto step = static_cast<double>(head < power_of_two ? head + 1 : 2 * (head - power_of_two) + 1);
    return static_cast<float>(std::pow(2.0, -max_bias * half / static_cast<double>(power_of_two) * step));
}

void attend_reference(const Attention & a, int part, int parts, AttentionScratch & scratch) {
    const int64_t group = a.heads / a.kv_heads;
    scratch.row.resize(static_cast<size_t>(a.key_size));
    scratch.logits.resize(static_cast<size_t>(a.tokens));
    for (int64_t stream = 0; stream < a.streams; stream++) {
        for (int64_t kv_head = 0; kv_head < a.kv_heads; kv_head++) {
            // (query, head of the group) pairs dealt out in turn: causal queries cost more the later they stand
            const int64_t pairs = a.queries * group;
            if (part >= pairs) {
                continue;
            }
            read_head(a, kv_head, stream, scratch);
            for (int64_t pair = part; pair < pairs; pair += parts) {
                const int64_t query = pair / group;
                const int64_t head = kv_head * group + pair % group;
                a.query.read(query, head, stream, a.key_size, scratch.row.data());
                if (a.round_query != nullptr) {
                    a.round_query(scratch.row.data(), a.key_size);
                }
                if (a.mask.base != nullptr) {
                    a.mask.read(query, head % a.mask_heads, stream % a.mask_streams, a.tokens, scratch.logits.data());
                } else {
                    std::fill(scratch.logits.begin(), scratch.logits.end(), 0.0F);
                }
                compute_logits(a, alibi_slope(a.max_bias, a.heads, head), scratch);
                weigh_values(a, a.sinks != nullptr ? a.sinks + head : nullptr, scratch, a.output(query, head, stream));
            }
        }
    }
}

} // namespace cascade
