// From a cache's memory to its indexes: whatever writes there is forgotten there, in its own stream only.
#include "backend/layer_indexes.h"

#include "ggml-cpp.h"

#include <gtest/gtest.h>
#include <numeric>

namespace cascade::backend {
namespace {

constexpr int64_t width = 8, cells = 64, streams = 2;

ggml_tensor * new_cache(ggml_context * context) {
    return ggml_new_tensor_3d(context, GGML_TYPE_F32, width, cells, streams);
}

struct Indexes : testing::Test {
    ggml_context_ptr context{ ggml_init({ 1 << 16, nullptr, true }) };
    ggml_tensor * keys = new_cache(context.get());
    ggml_tensor * values = new_cache(context.get());
    ggml_tensor * rows = ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, width, 1);
    ggml_tensor * index = ggml_new_tensor_1d(context.get(), GGML_TYPE_I64, 1);
    ggml_tensor * key_write = ggml_set_rows(context.get(), all_cells(keys), rows, index);
    ggml_tensor * value_write = ggml_set_rows(context.get(), all_cells(values), rows, index);
    ggml_backend_buffer_ptr buffer{ ggml_backend_alloc_ctx_tensors_from_buft(context.get(),
                                                                             ggml_backend_cpu_buffer_type()) };
    CacheWatch watch;
    LayerIndexes indexes{ watch, { 8, 4, 4, 4 } };
    Attention attention;
    graph::AttentionSite site;
    graph::CacheWrites writes;
    StreamIndexes of_site;
    std::vector<uint8_t> seen = std::vector<uint8_t>(cells, 1);

    void SetUp() override {
        std::vector<float> numbers(width * cells * streams);
        std::iota(numbers.begin(), numbers.end(), 1.0F);
        for (ggml_tensor * cache : { keys, values }) {
            ggml_backend_tensor_set(cache, numbers.data(), 0, ggml_nbytes(cache));
        }
        const std::vector<ggml_tensor *> nodes = { key_write, value_write };
        for (ggml_tensor * node : nodes) {
            node->flags |= GGML_TENSOR_FLAG_COMPUTE;
        }
        writes = graph::read_cache_writes(nodes);
        site.key_cache = keys;
        site.value_cache = values;
        attention.streams = streams;
        attention.kv_heads = 1;
        attention.key_size = attention.value_size = width;
        attention.key = rows_of(keys);
        attention.value = rows_of(values);
        of_site = indexes.of(site, attention, writes);
        ASSERT_EQ(of_site.size(), static_cast<size_t>(streams));
    }

    ggml_tensor * all_cells(ggml_tensor * cache) const {
        return ggml_view_2d(context.get(), cache, width, cells * streams, cache->nb[1], 0);
    }

    static Rows rows_of(const ggml_tensor * cache) {
        Rows found;
        found.base = static_cast<const char *>(cache->data);
        found.row_stride = cache->nb[1];
        found.stream_stride = cache->nb[2];
        found.format = Format::f32;
        found.to_float = [](const void * stored, float * to, int64_t n) {
            std::copy_n(static_cast<const float *>(stored), n, to);
        };
        return found;
    }

    // Covers what it can, in both streams.
    void cover() {
        for (int64_t stream = 0; stream < streams; stream++) {
            cover::Cells cache;
            cache.key = attention.key;
            cache.value = attention.value;
            cache.stream = stream;
            cache.kv_heads = 1;
            cache.key_size = cache.value_size = width;
            covers[stream] = &of_site[static_cast<size_t>(stream)]->cover_for({ seen, seen }, cache);
        }
    }

    std::vector<int64_t> covered() const {
        std::vector<int64_t> counts;
        for (const auto & one : of_site) {
            counts.push_back(one->covers() > 0 ? covers[counts.size()]->covered() : 0);
        }
        return counts;
    }

    const cover::CellCover * covers[streams] = {};
};

constexpr int64_t settled = cells - 8; // all but the window

TEST_F(Indexes, AWriteIsForgottenInItsStreamOnceApplied) {
    cover();
    ASSERT_EQ(covered(), (std::vector<int64_t>{ settled, settled }));
    const float number = 5.0F;
    ggml_backend_tensor_set(keys, &number, 3 * keys->nb[1], sizeof(number));
    ggml_backend_tensor_set(values, &number, values->nb[2] + (7 * values->nb[1]), sizeof(number));
    ggml_backend_tensor_set(values, &number, values->nb[2] + (9 * values->nb[1]), sizeof(number));
    EXPECT_EQ(covered(), (std::vector<int64_t>{ settled, settled })) << "another thread may be reading them";
    indexes.apply();
    EXPECT_EQ(covered(), (std::vector<int64_t>{ settled - 1, settled - 2 }));
    EXPECT_FALSE(covers[0]->has(3));
    EXPECT_FALSE(covers[1]->has(7));
}

TEST_F(Indexes, AGraphsWritesAreForgotten) {
    cover();
    const int64_t cell = cells + 2; // of the second stream
    ggml_backend_tensor_set(index, &cell, 0, sizeof(cell));
    watch.before(writes);
    indexes.apply();
    EXPECT_EQ(covered(), (std::vector<int64_t>{ settled, settled - 1 }));
    EXPECT_FALSE(covers[1]->has(2));
}

// As when positions are shifted: keys are rotated where they stand.
TEST_F(Indexes, AWholeCacheIsForgotten) {
    cover();
    indexes.cache_changes(keys->data);
    indexes.apply();
    EXPECT_EQ(of_site[0]->covers() + of_site[1]->covers(), 0);
    cover();
    EXPECT_EQ(covered(), (std::vector<int64_t>{ settled, settled })) << "and known again";
    ggml_backend_buffer_clear(buffer.get(), 0);
    indexes.apply();
    EXPECT_EQ(of_site[0]->covers() + of_site[1]->covers(), 0);
}

TEST_F(Indexes, ACacheThatGoesTakesItsIndexesAlong) {
    cover();
    EXPECT_GT(indexes.bytes(), 0);
    buffer.reset();
    indexes.apply();
    EXPECT_EQ(indexes.bytes(), 0);
    EXPECT_EQ(of_site[0]->covers(), 0) << "whoever holds it still finds nothing in it";
}

TEST_F(Indexes, OnlyCachesThatTheGraphWritesByCells) {
    graph::CacheWrites none;
    EXPECT_TRUE(indexes.of(site, attention, none).empty());
    site.value_cache = nullptr;
    EXPECT_TRUE(indexes.of(site, attention, writes).empty());
}

} // namespace
} // namespace cascade::backend
