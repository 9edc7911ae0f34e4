// A whole attention op, exact up to the order of its sums, on threads that all run at the same time.
#pragma once

#include "attend/kernels/barrier.h"
#include "attend/kernels/few_rows.h"
#include "attend/kernels/tiles.h"

#include <atomic>
#include <vector>

namespace cascade::attend {

// Which way the op went, and so did all its parts.
enum class ExactWay : uint8_t {
    failed, // memory ran out before anything was written
    tiles,  // many query rows
    few,    // query rows that read the cache as it is
};

// A KV head of a stream has so few query rows, over all heads of its group, that packing its columns doesn't pay
// (measured at 8192 columns of 64 and 128 values: even at about 24 rows).
constexpr int64_t most_few_rows = 24;

// What the parts of one op share; kept for the next op, which must not begin before this one is over.
class ExactShared {
  public:
    ExactShared() = default;
    ExactShared(const ExactShared &) = delete;
    ExactShared & operator=(const ExactShared &) = delete;

  private:
    friend class ExactRun;

    Barrier barrier;
    std::atomic<int64_t> next{ 0 };
    std::atomic<bool> failed{ false };
    std::vector<Columns> columns;                       // of some KV heads
    std::vector<std::vector<RunningSoftmax>> part_sums; // for each part, of all KV heads
};

// What one thread brings along, kept for its next op.
struct ExactScratch {
    std::vector<QueryRows> queries;
    RunningSoftmax state;
    TileScratch tile;
    FewScratch few;
    Buffer rows;
};

// Computes part `part` of `parts`; every part must be called once, all at the same time, with the same `shared`.
ExactWay attend_exact(const Attention & attention, int part, int parts, ExactShared & shared, ExactScratch & scratch);

} // namespace cascade::attend
