// The parts of CacheWatch without a model: what each of a buffer's functions tells, whose life ends first, and what is
// read off the nodes of a graph.
#include "backend/cache_watch.h"
#include "graph/shadow.h"

#include "ggml-backend-impl.h"
#include "ggml-cpp.h"
#include "ggml-impl.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <thread>
#include <utility>

namespace cascade::backend {
namespace {

constexpr int64_t width = 4, stream = 8, streams = 2;

// What a listener heard, as words.
class Words final : public CacheListener {
  public:
    void cells_change(const void *, std::span<const int64_t> cells) noexcept override {
        for (const int64_t cell : cells) {
            heard.append(std::to_string(cell)).append(" ");
        }
    }
    void cache_changes(const void *) noexcept override { heard += "all "; }
    void cache_goes(const void *) noexcept override { heard += "gone "; }

    std::string take() { return std::exchange(heard, {}); }

  private:
    std::string heard;
};

// A cache in a buffer of its own, beside a tensor that is none.
struct Memory {
    ggml_context_ptr context{ ggml_init({ 1 << 16, nullptr, true }) };
    ggml_tensor * cache = ggml_new_tensor_3d(context.get(), GGML_TYPE_F32, width, stream, streams);
    ggml_tensor * other = ggml_new_tensor_1d(context.get(), GGML_TYPE_F32, 16);
    ggml_tensor * second_stream = ggml_view_2d(context.get(), cache, width, stream, cache->nb[1], cache->nb[2]);
    ggml_backend_buffer_ptr buffer{ ggml_backend_alloc_ctx_tensors_from_buft(context.get(),
                                                                             ggml_backend_cpu_buffer_type()) };
    std::vector<float> values = std::vector<float>(width * stream * streams, 1.0F);

    void set(ggml_tensor * tensor, int64_t first, int64_t n) {
        ggml_backend_tensor_set(tensor, values.data(), static_cast<size_t>(first) * sizeof(float),
                                static_cast<size_t>(n) * sizeof(float));
    }
};

struct Hooks : testing::Test {
    Memory memory;
    Words words;
    CacheWatch watch;

    void start(CellLayout layout = CellLayout::rows) {
        watch.listen(&words);
        ASSERT_TRUE(watch.watch(*memory.cache, layout));
        ASSERT_TRUE(watch.watch(*memory.cache, layout)) << "again";
    }
};

TEST_F(Hooks, TensorWritesNameTheirRows) {
    start();
    memory.set(memory.cache, 2 * width + 1, width);
    EXPECT_EQ(words.take(), "2 3 ");
    memory.set(memory.second_stream, 0, width);
    EXPECT_EQ(words.take(), "8 ");
    memory.set(memory.cache, 0, width * stream * streams);
    EXPECT_EQ(words.take(), "all ");
    memory.set(memory.other, 0, 16);
    EXPECT_EQ(words.take(), "");
    ggml_backend_tensor_memset(memory.cache, 7, memory.cache->nb[1], 1);
    EXPECT_EQ(words.take(), "1 ");
}

TEST_F(Hooks, TransposedCellsAreColumns) {
    start(CellLayout::transposed);
    memory.set(memory.cache, 3, 2);
    EXPECT_EQ(words.take(), "3 4 ");
    memory.set(memory.second_stream, 2 * stream + 5, 1);
    EXPECT_EQ(words.take(), "13 ");
    memory.set(memory.second_stream, 0, width * stream);
    EXPECT_EQ(words.take(), "8 9 10 11 12 13 14 15 ");
    memory.set(memory.cache, stream - 1, 2);
    EXPECT_EQ(words.take(), "0 1 2 3 4 5 6 7 ");
}

TEST_F(Hooks, CopiesAndClearing) {
    Memory source;
    std::memset(source.cache->data, 0, ggml_nbytes(source.cache));
    start();
    EXPECT_TRUE(ggml_backend_buffer_copy_tensor(source.cache, memory.cache));
    EXPECT_EQ(words.take(), "all ");
    ggml_tensor * row = ggml_view_1d(source.context.get(), source.cache, width, 0);
    ggml_tensor * to = ggml_view_1d(memory.context.get(), memory.cache, width, memory.cache->nb[1] * 5);
    EXPECT_EQ(ggml_backend_view_init(row), GGML_STATUS_SUCCESS);
    EXPECT_EQ(ggml_backend_view_init(to), GGML_STATUS_SUCCESS);
    EXPECT_TRUE(ggml_backend_buffer_copy_tensor(row, to));
    EXPECT_EQ(words.take(), "5 ");
    EXPECT_TRUE(ggml_backend_buffer_copy_tensor(to, row)) << "read only";
    EXPECT_EQ(words.take(), "");
    ggml_backend_buffer_clear(memory.buffer.get(), 0);
    EXPECT_EQ(words.take(), "all ");
}

int resets = 0;
int sets_2d = 0;

TEST_F(Hooks, FunctionsThatTheEnginesCpuBufferLacks) {
    memory.buffer->iface.reset = [](ggml_backend_buffer_t) { resets++; };
    memory.buffer->iface.set_tensor_2d = [](ggml_backend_buffer_t, ggml_tensor *, const void *, size_t, size_t, size_t,
                                            size_t, size_t) { sets_2d++; };
    start();
    ggml_backend_buffer_reset(memory.buffer.get());
    EXPECT_EQ(words.take(), "all ");
    ggml_backend_tensor_set_2d(memory.cache, memory.values.data(), 0, 8, 3, memory.cache->nb[1] * 2, 8);
    EXPECT_EQ(words.take(), "0 2 4 ");
    EXPECT_EQ(resets, 1);
    EXPECT_EQ(sets_2d, 1);
}

TEST_F(Hooks, TheBufferGoesFirst) {
    start();
    memory.buffer.reset();
    EXPECT_EQ(words.take(), "gone ");
    EXPECT_FALSE(CacheWatch::anything_watched());
}

TEST_F(Hooks, TheWatchGoesFirst) {
    const ggml_backend_buffer_i plain = memory.buffer->iface;
    {
        CacheWatch short_lived;
        short_lived.listen(&words);
        EXPECT_TRUE(short_lived.watch(*memory.cache, CellLayout::rows));
        EXPECT_NE(memory.buffer->iface.set_tensor, plain.set_tensor);
        EXPECT_EQ(memory.buffer->iface.set_tensor_2d, nullptr);
    }
    EXPECT_EQ(std::memcmp(&memory.buffer->iface, &plain, sizeof(plain)), 0);
    EXPECT_FALSE(CacheWatch::anything_watched());
    memory.set(memory.cache, 0, 1);
    EXPECT_EQ(words.take(), "");
}

TEST_F(Hooks, TwoWatchesOfOneCache) {
    start();
    Words more;
    auto second = std::make_unique<CacheWatch>();
    second->listen(&more);
    EXPECT_TRUE(second->watch(*memory.cache, CellLayout::rows));
    EXPECT_FALSE(second->watch(*memory.cache, CellLayout::transposed)) << "one of the two is wrong";
    memory.set(memory.cache, 0, 1);
    EXPECT_EQ(words.take(), "0 ");
    EXPECT_EQ(more.take(), "0 ");
    second.reset();
    memory.set(memory.cache, 0, 1);
    EXPECT_EQ(words.take(), "0 ");
    watch.forget(memory.cache->data);
    memory.set(memory.cache, 0, 1);
    EXPECT_EQ(words.take(), "");
    EXPECT_FALSE(CacheWatch::anything_watched());
}

TEST_F(Hooks, WhatCannotBeWatched) {
    EXPECT_FALSE(watch.watch(*memory.cache, CellLayout::rows)) << "nobody listens";
    watch.listen(&words);
    EXPECT_FALSE(watch.watch(*memory.second_stream, CellLayout::rows)) << "a view";
    ggml_tensor * unallocated = ggml_new_tensor_2d(memory.context.get(), GGML_TYPE_F32, 4, 4);
    EXPECT_FALSE(watch.watch(*unallocated, CellLayout::rows));
    unallocated->data = memory.values.data();
    EXPECT_FALSE(watch.watch(*unallocated, CellLayout::rows)) << "no buffer";
    unallocated->buffer = memory.buffer.get();
    EXPECT_FALSE(watch.watch(*unallocated, CellLayout::rows)) << "outside of its buffer";
    EXPECT_FALSE(CacheWatch::anything_watched());
}

TEST(HookThreads, ContextsComeAndGoBesideEachOther) {
    Memory shared;
    Words heard;
    CacheWatch watch;
    watch.listen(&heard);
    ASSERT_TRUE(watch.watch(*shared.cache, CellLayout::rows));
    const auto live = [&shared](int64_t own_cell) {
        for (int life = 0; life < 50; life++) {
            Memory memory;
            Words words;
            CacheWatch own;
            own.listen(&words);
            EXPECT_TRUE(own.watch(*memory.cache, CellLayout::rows));
            EXPECT_TRUE(own.watch(*shared.cache, CellLayout::rows));
            memory.set(memory.cache, own_cell * width, width);
            own.forget(shared.cache->data);
            shared.set(shared.cache, own_cell * width, width);
            EXPECT_TRUE(words.take().find(std::to_string(own_cell) + " ") != std::string::npos);
            if (life % 2 == 0) {
                memory.buffer.reset();
                EXPECT_EQ(words.take(), "gone ");
            }
        }
    };
    std::vector<std::thread> threads;
    for (int64_t i = 0; i < 4; i++) {
        threads.emplace_back(live, i);
    }
    for (std::thread & thread : threads) {
        thread.join();
    }
    const std::string all = heard.take();
    EXPECT_EQ(std::count(all.begin(), all.end(), ' '), 4 * 50);
}

// Graphs that write the cache. They are read, never computed.
struct Writes : Hooks {
    ggml_context_ptr leaves{ ggml_init({ 1 << 16, nullptr, true }) };
    ggml_tensor * wide = ggml_new_tensor_2d(leaves.get(), GGML_TYPE_I64, 3, 2);
    ggml_tensor * long_index = ggml_new_tensor_1d(leaves.get(), GGML_TYPE_I64, 3);
    ggml_tensor * int_index = ggml_new_tensor_1d(leaves.get(), GGML_TYPE_I32, 3);
    ggml_tensor * rows = ggml_new_tensor_2d(leaves.get(), GGML_TYPE_F32, width, 3);
    ggml_tensor * values = ggml_new_tensor_2d(leaves.get(), GGML_TYPE_F32, 1, 3);
    ggml_backend_buffer_ptr inputs{ ggml_backend_alloc_ctx_tensors_from_buft(leaves.get(),
                                                                             ggml_backend_cpu_buffer_type()) };
    ggml_context_ptr graphs{ ggml_init({ 1 << 18, nullptr, false }) };

    Writes() {
        std::memset(wide->data, 0, ggml_nbytes(wide));
        name(9, 2, 15);
    }

    void name(int a, int b, int c) const {
        const int64_t longs[] = { a, b, c };
        const int32_t ints[] = { a, b, c };
        std::memcpy(long_index->data, longs, sizeof(longs));
        std::memcpy(int_index->data, ints, sizeof(ints));
    }

    std::string told(ggml_tensor * node, bool computed = true) {
        ggml_cgraph * graph = ggml_new_graph_custom(graphs.get(), 16, false);
        ggml_build_forward_expand(graph, node);
        for (int i = 0; i < graph->n_nodes && !computed; i++) {
            graph->nodes[i]->flags &= ~GGML_TENSOR_FLAG_COMPUTE;
        }
        const graph::CacheWrites writes = graph::read_cache_writes(graph::nodes_of(*graph));
        names_cells = writes.name_cells_in(graph::memory_of(*memory.cache));
        watch.before(writes);
        std::string once = words.take();
        watch.before(writes);
        EXPECT_EQ(words.take(), once) << "as often as it is computed";
        return once;
    }

    bool names_cells = false; // in the graph told last

    ggml_tensor * merged() { return ggml_reshape_2d(graphs.get(), memory.cache, width, stream * streams); }
    ggml_tensor * in_values() { return ggml_reshape_2d(graphs.get(), memory.cache, 1, width * stream * streams); }
};

TEST_F(Writes, RowsAreNamedByTheIndex) {
    start();
    EXPECT_EQ(told(ggml_set_rows(graphs.get(), merged(), rows, long_index)), "9 2 15 ");
    EXPECT_TRUE(names_cells);
    EXPECT_EQ(told(ggml_set_rows(graphs.get(), merged(), rows, int_index)), "9 2 15 ");
    EXPECT_EQ(told(ggml_set_rows(graphs.get(), merged(), rows, long_index), false), "") << "does not run";
    name(1, 2, 3);
    EXPECT_EQ(told(ggml_set_rows(graphs.get(), memory.second_stream, rows, long_index)), "9 10 11 ");
    name(1, 16, 3);
    EXPECT_EQ(told(ggml_set_rows(graphs.get(), merged(), rows, long_index)), "all ") << "out of range";
    EXPECT_EQ(told(ggml_set_rows(graphs.get(), in_values(), values, long_index)), "all ") << "values, not cells";
}

TEST_F(Writes, ColumnsAreNamedByTheirValues) {
    start(CellLayout::transposed);
    name(3, 3 + stream, width * stream + 5);
    EXPECT_EQ(told(ggml_set_rows(graphs.get(), in_values(), values, long_index)), "3 13 ");
    name(7, 8, 8 + stream); // the next line's first value
    EXPECT_EQ(told(ggml_set_rows(graphs.get(), in_values(), values, long_index)), "7 0 ");
    name((width - 1) * stream + 2, width * stream + 2, 0); // a line apart, and in the next stream
    EXPECT_EQ(told(ggml_set_rows(graphs.get(), in_values(), values, long_index)), "2 10 0 ");
    name(1, 2, 3);
    EXPECT_EQ(told(ggml_set_rows(graphs.get(), merged(), rows, long_index)), "all ") << "rows of a transposed cache";
}

TEST_F(Writes, WhatTheIndexSaysMustBeFinal) {
    start();
    ggml_tensor * computed = ggml_cont(graphs.get(), ggml_transpose(graphs.get(), long_index));
    EXPECT_EQ(told(ggml_set_rows(graphs.get(), merged(), rows, ggml_reshape_1d(graphs.get(), computed, 3))), "all ");
    EXPECT_EQ(told(ggml_set_rows(graphs.get(), merged(), rows, ggml_view_1d(graphs.get(), wide, 3, 0))), "all ");
    ggml_tensor * changed = ggml_scale(graphs.get(), rows, 2.0F);
    changed->data = long_index->data; // as an allocator might reuse it
    EXPECT_EQ(told(ggml_set_rows(graphs.get(), merged(), changed, long_index)), "all ");
}

TEST_F(Writes, NoMemoryForTheCells) {
    start();
    ggml_tensor * node = ggml_set_rows(graphs.get(), merged(), rows, long_index);
    long_index->ne[0] = int64_t{ 1 } << 60;
    EXPECT_EQ(told(node), "all ");
}

TEST_F(Writes, AnythingElseIsTheWholeCache) {
    start();
    ggml_context * ctx = graphs.get();
    EXPECT_EQ(told(ggml_cpy(ctx, rows, ggml_view_2d(ctx, memory.cache, width, 3, memory.cache->nb[1], 0))), "all ");
    EXPECT_EQ(told(ggml_scale_inplace(ctx, memory.cache, 0.5F)), "all ");
    EXPECT_EQ(told(ggml_set_2d_inplace(ctx, merged(), rows, rows->nb[1], 0)), "all ");
    EXPECT_EQ(told(ggml_scale(ctx, memory.cache, 0.5F)), "") << "reads";
    EXPECT_FALSE(names_cells);
    EXPECT_EQ(told(ggml_cont(ctx, ggml_transpose(ctx, merged()))), "") << "reads through views";
    CacheWatch::everything_changes();
    EXPECT_EQ(words.take(), "all ");
}

} // namespace
} // namespace cascade::backend
