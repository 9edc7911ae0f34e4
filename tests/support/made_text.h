// A text as a method sees it: for every layer queries, keys and values at random, handed over block by block with the
// output that the reference gives, as the engine would.
#pragma once

#include "cascade/attention.h"
#include "cascade/cover.h"
#include "support/made_block.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

namespace cascade::test {

struct TextShape {
    int64_t tokens = 50;
    int64_t heads = 4;
    int64_t kv_heads = 2;
    int64_t key_size = 12;
    int64_t value_size = 10;
    int layers = 2;
};

class MadeText {
  public:
    explicit MadeText(const TextShape & of, uint64_t seed = 1) : shape(of) {
        std::mt19937_64 random(seed);
        for (int layer = 0; layer < shape.layers; layer++) {
            query.push_back(normal_floats(random, shape.tokens * shape.heads * shape.key_size));
            key.push_back(normal_floats(random, shape.tokens * shape.kv_heads * shape.key_size));
            value.push_back(normal_floats(random, shape.tokens * shape.kv_heads * shape.value_size));
            rows.push_back(clustered(random));
            std::vector<float> all(static_cast<size_t>(shape.tokens * width()));
            Attention attention = block(layer, 0, shape.tokens, all);
            AttentionScratch scratch;
            attend_reference(attention, 0, 1, scratch);
            dense.push_back(std::move(all));
        }
    }

    int64_t width() const { return shape.heads * shape.value_size; }

    // Tokens first … first + count - 1 as queries, the dense output copied into `out`. The cache has more room than the
    // text needs, as the engine's has: the mask hides the rest.
    Attention block(int layer, int64_t first, int64_t count, std::vector<float> & out) {
        mask.assign(static_cast<size_t>(count * shape.tokens), -std::numeric_limits<float>::infinity());
        for (int64_t i = 0; i < count; i++) {
            std::fill_n(mask.data() + (i * shape.tokens), first + i + 1, 0.0F);
        }
        const auto at = static_cast<size_t>(layer);
        Attention a;
        a.queries = count, a.tokens = shape.tokens, a.heads = shape.heads, a.kv_heads = shape.kv_heads;
        a.key_size = shape.key_size, a.value_size = shape.value_size;
        a.query = packed(query[at].data() + (first * shape.heads * shape.key_size), shape.heads, shape.key_size);
        a.key = packed(key[at].data(), shape.kv_heads, shape.key_size);
        a.value = packed(value[at].data(), shape.kv_heads, shape.value_size);
        a.mask = packed(mask.data(), 1, shape.tokens);
        a.pre_scale = 0.5F;
        if (dense.size() > at) {
            const auto begin = dense[at].begin() + (first * width());
            out.assign(begin, begin + (count * width()));
        }
        a.out = reinterpret_cast<char *>(out.data());
        a.out_head_stride = static_cast<size_t>(shape.value_size) * sizeof(float);
        a.out_query_stride = static_cast<size_t>(width()) * sizeof(float);
        return a;
    }

    TokenRows rows_of(int layer, int64_t first, int64_t count) const {
        return { rows[static_cast<size_t>(layer)].data() + (first * row_size), count, row_size, row_size };
    }

    static constexpr int64_t row_size = 16;

    TextShape shape;
    std::vector<std::vector<float>> query; // by layer, then token and head
    std::vector<std::vector<float>> key;
    std::vector<std::vector<float>> value;
    std::vector<std::vector<float>> dense;
    std::vector<std::vector<float>> rows; // that covers are chosen on: around a few centres

  private:
    static void copy_floats(const void * stored, float * values, int64_t n) {
        std::memcpy(values, stored, static_cast<size_t>(n) * sizeof(float));
    }

    static Rows packed(const float * values, int64_t heads, int64_t size) {
        Rows result;
        result.base = reinterpret_cast<const char *>(values);
        result.head_stride = static_cast<size_t>(size) * sizeof(float);
        result.row_stride = static_cast<size_t>(heads) * result.head_stride;
        result.to_float = copy_floats;
        return result;
    }

    std::vector<float> clustered(std::mt19937_64 & random) const {
        const std::vector<float> centres = normal_floats(random, 6 * row_size);
        std::vector<float> result = normal_floats(random, shape.tokens * row_size, 0.2F);
        for (int64_t token = 0; token < shape.tokens; token++) {
            const int64_t centre = pick(random, 0, 5);
            for (int64_t i = 0; i < row_size; i++) {
                result[static_cast<size_t>((token * row_size) + i)] +=
                    centres[static_cast<size_t>((centre * row_size) + i)];
            }
        }
        return result;
    }

    std::vector<float> mask;
};

} // namespace cascade::test
