#include "graph/cache_writes.h"

#include "graph/tensor.h"

#include "ggml-backend.h"

#include <algorithm>

namespace cascade::graph {

namespace {

// One row of numbers in host memory that no node computes.
bool is_plain_index(const ggml_tensor * index) {
    if (!is_leaf(index) || index->view_src != nullptr || index->data == nullptr || index->buffer == nullptr) {
        return false;
    }
    return (index->type == GGML_TYPE_I64 || index->type == GGML_TYPE_I32) && ggml_is_contiguous(index) &&
           ggml_nrows(index) == 1 && ggml_backend_buffer_is_host(index->buffer);
}

bool writes_rows_of_a_leaf(const ggml_tensor * node) {
    return node->op == GGML_OP_SET_ROWS && node->view_src != nullptr && is_leaf(root_of(node)) && node->ne[2] == 1 &&
           node->ne[3] == 1;
}

class WriteReader {
  public:
    explicit WriteReader(Nodes graph_nodes) : nodes(graph_nodes) {}

    CacheWrites read() {
        for (size_t i = 0; i < nodes.size(); i++) {
            const ggml_tensor * node = nodes[i];
            if (node == nullptr || is_leaf(node) || is_view_op(node)) {
                continue;
            }
            if (writes_rows_of_a_leaf(node) && is_final(node->src[1], i)) {
                result.indexed.push_back({ node, node->src[1] });
            } else {
                result.others.push_back(memory_of(*node));
            }
        }
        join(result.others);
        return std::move(result);
    }

  private:
    struct Index {
        const ggml_tensor * tensor = nullptr;
        size_t checked = 0; // no node before this one writes its memory
        bool overwritten = false;
    };

    // Nothing that runs before node `user` writes the index: what it holds now is what the node will read. All layers
    // share one index or two, so their checks share the walk.
    bool is_final(const ggml_tensor * tensor, size_t user) {
        if (!is_plain_index(tensor)) {
            return false;
        }
        auto found =
            std::find_if(indices.begin(), indices.end(), [&](const Index & one) { return one.tensor == tensor; });
        if (found == indices.end()) {
            found = indices.insert(indices.end(), Index{ tensor });
        }
        for (; found->checked < user; found->checked++) {
            const ggml_tensor * node = nodes[found->checked];
            found->overwritten = found->overwritten || (node != nullptr && !is_view_op(node) && overlap(node, tensor));
        }
        return !found->overwritten;
    }

    static void join(std::vector<MemoryRange> & ranges) {
        std::erase_if(ranges, [](const MemoryRange & range) { return range.begin == range.end; });
        std::sort(ranges.begin(), ranges.end(),
                  [](const MemoryRange & a, const MemoryRange & b) { return a.begin < b.begin; });
        size_t last = 0;
        for (size_t i = 1; i < ranges.size(); i++) {
            if (ranges[i].begin <= ranges[last].end) {
                ranges[last].end = std::max(ranges[last].end, ranges[i].end);
            } else {
                ranges[++last] = ranges[i];
            }
        }
        ranges.resize(std::min(ranges.size(), last + 1));
    }

    Nodes nodes;
    CacheWrites result;
    std::vector<Index> indices;
};

} // namespace

MemoryRange memory_of(const ggml_tensor & tensor) {
    const auto * begin = static_cast<const std::byte *>(tensor.data);
    return begin == nullptr ? MemoryRange{} : MemoryRange{ begin, begin + ggml_nbytes(&tensor) };
}

int64_t IndexedWrite::row(int64_t i) const {
    return index->type == GGML_TYPE_I64 ? static_cast<const int64_t *>(index->data)[i]
                                        : static_cast<const int32_t *>(index->data)[i];
}

bool CacheWrites::name_cells_in(const MemoryRange & cache) const {
    return std::any_of(indexed.begin(), indexed.end(), [&](const IndexedWrite & write) {
        return write.runs() && cache.contains(memory_of(*write.node));
    });
}

CacheWrites read_cache_writes(Nodes nodes) { return WriteReader(nodes).read(); }

} // namespace cascade::graph
