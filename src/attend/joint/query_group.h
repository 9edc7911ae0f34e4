// One thread's work in reading a prompt: some queries of a run and one KV head. The window first and exactly; then,
// with what each query gave it known, the past: rough keys find what some query of the group wants opened, opened
// tokens and speakers for the others are folded into the same softmax.
#pragma once

#include "attend/joint/cluster_means.h"
#include "attend/joint/phases.h"
#include "attend/joint/work.h"
#include "attend/kernels/tiles.h"

#include <vector>

namespace cascade::attend {

constexpr int64_t queries_of_block = 32; // multiplied together; a group is some blocks

// What all groups of a run and KV head read.
struct HeadColumns {
    Columns window;
    Columns means; // of all clusters, with nothing opened
};

// Consecutive queries of a run.
struct GroupRange {
    int64_t first = 0;
    int64_t count = 0;
};

class QueryGroup {
  public:
    // Computes the outputs of some queries; `opened` receives the tokens that were opened for them. May throw
    // std::bad_alloc.
    void attend(const Attention & attention, const CoveredRun & run, const HeadColumns & columns, int64_t head,
                GroupRange range, float epsilon, std::vector<int32_t> & opened, PhaseTimes * times);

    // Writes some of the window's columns, or all of the means.
    void fill_window(const Attention & attention, const CoveredRun & run, int64_t head, const Share & share,
                     Columns & window);
    void fill_means(const Attention & attention, const CoveredRun & run, int64_t head, Columns & columns) {
        means.fill_keys(run, attention, head, columns);
    }

    void start_counting() { counted = {}; }
    const JointCounts & counts() const { return counted; }

  private:
    struct Block {
        QueryRows queries;
        RunningSoftmax state;
    };

    void attend_window(const Attention & attention, const CoveredRun & run, const HeadColumns & columns, Block & block,
                       float epsilon, int64_t first_row);
    void find_opened(const CoveredRun & run, int64_t head, int64_t rows, std::vector<int32_t> & opened);
    void count(const CoveredRun & run, int64_t rows, int64_t opened, int64_t speakers);

    std::vector<Block> blocks;
    RunningSoftmax past_mass; // an estimate of what the past weighs
    ClusterMeans means;
    Columns past; // opened tokens, then speakers
    Buffer fill;
    TileScratch tiles;
    std::vector<int8_t> rounded;
    std::vector<cover::RoughQuery> rough_queries; // by row of the group
    std::vector<float> thresholds;                // by row
    std::vector<float> best;                      // by cell
    std::vector<float> row_values;
    JointCounts counted;
};

} // namespace cascade::attend
