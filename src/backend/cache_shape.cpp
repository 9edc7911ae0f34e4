#include "backend/cache_shape.h"

#include <algorithm>

namespace cascade::backend {

CellRange CacheShape::cells_in(const graph::MemoryRange & part) const {
    if (!memory.overlaps(part)) {
        return {};
    }
    const int64_t from = std::max(part.begin, memory.begin) - memory.begin;
    const int64_t last = std::min(part.end, memory.end) - memory.begin - 1;
    if (layout == CellLayout::rows) {
        return { from / row_bytes, last / row_bytes + 1 };
    }
    const int64_t first_value = from / value_bytes;
    const int64_t last_value = last / value_bytes;
    const int64_t stream_values = stream * width;
    const int64_t first_stream = first_value / stream_values;
    const int64_t last_stream = last_value / stream_values;
    if (first_value / stream != last_value / stream) {
        return { first_stream * stream, (last_stream + 1) * stream };
    }
    return { first_stream * stream + first_value % stream, first_stream * stream + last_value % stream + 1 };
}

std::optional<CacheShape> shape_of(const ggml_tensor & root, CellLayout layout) {
    const bool usable = root.view_src == nullptr && root.data != nullptr && ggml_nelements(&root) > 0 &&
                        ggml_is_contiguous(&root) && root.ne[3] == 1;
    if (!usable || (layout == CellLayout::transposed && ggml_blck_size(root.type) != 1)) {
        return std::nullopt;
    }
    CacheShape shape;
    shape.memory = graph::memory_of(root);
    shape.layout = layout;
    shape.width = root.ne[0];
    shape.stream = root.ne[1];
    shape.cells = root.ne[1] * root.ne[2];
    shape.row_bytes = static_cast<int64_t>(root.nb[1]);
    shape.value_bytes = static_cast<int64_t>(root.nb[0]);
    return shape;
}

} // namespace cascade::backend
