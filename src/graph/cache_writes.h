// What a graph writes into memory that outlives it: the cells of caches, and everything else.
#pragma once

#include "graph/model_graph.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace cascade::graph {

struct MemoryRange {
    const std::byte * begin = nullptr;
    const std::byte * end = nullptr;

    bool overlaps(const MemoryRange & other) const { return begin < other.end && other.begin < end; }
    bool contains(const MemoryRange & other) const { return begin <= other.begin && other.end <= end; }
};

// All bytes between the first and the last one of a tensor; empty where it has no memory.
MemoryRange memory_of(const ggml_tensor & tensor);

// A SET_ROWS node that writes rows of a leaf's memory, named by an index that is final before the graph runs.
struct IndexedWrite {
    const ggml_tensor * node = nullptr; // row i is at node->data + i * node->nb[1]
    const ggml_tensor * index = nullptr;

    bool runs() const { return (node->flags & GGML_TENSOR_FLAG_COMPUTE) != 0; }
    int64_t rows() const { return index->ne[0]; }
    int64_t row(int64_t i) const;
};

// Points into the engine's tensors and lives as long as they do.
struct CacheWrites {
    std::vector<IndexedWrite> indexed;
    std::vector<MemoryRange> others; // of all other nodes that compute, in order, without overlaps

    // Whether some node names the cells it writes there. A cache that a graph reads but does not write may be written
    // by a graph that never comes by: another backend's part of it.
    bool name_cells_in(const MemoryRange & cache) const;
};

// Throws std::bad_alloc at most.
CacheWrites read_cache_writes(Nodes nodes);

} // namespace cascade::graph
