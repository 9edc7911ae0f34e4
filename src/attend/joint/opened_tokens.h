// Which tokens were opened for which queries of a run.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cascade::attend {

struct OpenedTokens {
    std::span<const std::vector<int32_t>> lists; // by group of queries, then KV head
    int64_t kv_heads = 0;
    int64_t queries_of_group = 0;

    // `query`: counted from the run's first.
    std::span<const int32_t> of(int64_t query, int64_t kv_head) const {
        return lists[static_cast<size_t>((query / queries_of_group * kv_heads) + kv_head)];
    }
};

} // namespace cascade::attend
