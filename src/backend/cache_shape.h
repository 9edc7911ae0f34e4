// Where the cells of a cache lie in its memory.
#pragma once

#include "graph/cache_writes.h"

#include <optional>

namespace cascade::backend {

enum class CellLayout {
    rows,       // a cell is a row of the cache: keys, and values with flash attention
    transposed, // a cell is a column: values without
};

// Half open, in cells counted over all streams.
struct CellRange {
    int64_t first = 0;
    int64_t end = 0;
};

struct CacheShape {
    graph::MemoryRange memory;
    CellLayout layout = CellLayout::rows;
    int64_t width = 0;       // values of a cell
    int64_t stream = 0;      // cells of a stream
    int64_t cells = 0;       // of all streams
    int64_t row_bytes = 0;   // of `width` values
    int64_t value_bytes = 0; // transposed only

    bool operator==(const CacheShape & other) const {
        return memory.begin == other.memory.begin && memory.end == other.memory.end && layout == other.layout &&
               width == other.width && stream == other.stream;
    }

    // Cells that have a byte in that part of the memory; with transposed cells some more where it is no piece of one
    // line. Empty where it is elsewhere.
    CellRange cells_in(const graph::MemoryRange & part) const;
};

// The shape of a cache [width, cells of a stream, streams]; nothing where the tensor can't be one.
std::optional<CacheShape> shape_of(const ggml_tensor & root, CellLayout layout);

} // namespace cascade::backend
