// Attention on a cover for many query rows, as in reading a prompt: one KV head after the other. The window first and
// exactly; then, with what each query gave it known, the past: rough keys find what some query wants opened, opened
// tokens and speakers for the others are folded into the same softmax.
#pragma once

#include "attend/joint/phases.h"
#include "attend/joint/work.h"
#include "attend/kernels/barrier.h"
#include "attend/kernels/tiles.h"

#include <atomic>
#include <vector>

namespace cascade::attend {

class ManyRows {
  public:
    // Makes room. By one thread, before the others; may throw std::bad_alloc.
    void prepare(const Attention & attention, const CoveredRun & run, int parts);

    // Computes the run's outputs. By all threads at once. false, to all of them: out of memory.
    bool attend(const Attention & attention, const CoveredRun & run, float epsilon, Barrier & barrier, int part,
                int parts, PhaseTimes * times);

    // The tokens that were opened for each KV head in the last run.
    const std::vector<std::vector<int32_t>> & opened() const { return opened_of; }

    JointCounts counts() const { return counted; }

  private:
    struct Block { // consecutive queries that one thread works on
        int64_t first = 0;
        int64_t count = 0;
        int64_t first_row = 0; // among the run's rows
        QueryRows queries;
        RunningSoftmax state;
        RunningSoftmax past; // an estimate of what the past weighs
    };
    struct Part {
        Buffer fill;
        TileScratch tiles;
        std::vector<int32_t> opened;
        int64_t opened_count = 0;
    };

    void attend_window(const Attention & attention, const CoveredRun & run, int64_t head, Block & block, Part & own,
                       float epsilon);
    void find_opened(const CoveredRun & run, int64_t head, int part, int parts);
    void gather_opened(const CoveredRun & run, std::vector<int32_t> & opened, int parts);
    void fill_mean_speakers(const CoveredRun & run, int64_t head);
    void fill_closed_speakers(const CoveredRun & run, const Attention & attention, int64_t head);
    void take_opened(const CoveredRun & run, const Attention & attention, int64_t head);

    int64_t cells = 0;
    std::vector<Block> blocks;
    std::vector<Part> part_of;
    Columns window;
    Columns means; // of all clusters, with nothing opened
    Columns past;  // opened tokens, then speakers
    std::vector<int8_t> rounded;
    std::vector<cover::RoughQuery> rough_queries; // by row of the run
    std::vector<float> thresholds;                // by row
    std::vector<float> best;                      // by cell
    std::vector<std::vector<int32_t>> opened_of;  // by KV head
    std::vector<float> row_values;                // one row, or one token
    std::vector<float> speaker_keys;              // clusters x key_size
    std::vector<float> speaker_values;
    std::vector<float> speaker_counts;
    std::atomic<bool> failed{ false };
    JointCounts counted;
};

} // namespace cascade::attend
