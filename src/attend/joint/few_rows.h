// Attention on a cover for few query rows, as in generating text: all threads go through the past together, each with
// its part of the cells.
//
// A cluster's closed members share one logit, their mean key's, and it is never formed: with s_i the logits of opened
// members, it is (<q, sum of keys> - sum of s_i) / (members - opened). With u the weight of that logit, the closed
// members add u * (sum of values - values of opened ones): so an opened token counts with its own weight minus u.
#pragma once

#include "attend/joint/phases.h"
#include "attend/joint/work.h"
#include "attend/kernels/barrier.h"
#include "attend/kernels/few_rows.h"

#include <vector>

namespace cascade::attend {

class FewRows {
  public:
    // Reads the queries and makes room: the only place that may throw std::bad_alloc. By one thread, before the others.
    void prepare(const Attention & attention, const CoveredRun & run, int parts);

    // Computes the run's outputs. By all threads at once.
    void attend(const Attention & attention, const CoveredRun & run, float epsilon, Barrier & barrier, int part,
                int parts, PhaseTimes * times);

    // The tokens that were opened for each KV head in the last run. May throw std::bad_alloc.
    std::vector<std::vector<int32_t>> opened(int parts) const;

    // What all parts read in the last run; after attend has returned everywhere.
    JointCounts counts(int parts) const;

  private:
    struct Gate {
        float reference = 0.0F; // that weights of speakers and opened tokens are relative to
        float threshold = 0.0F; // logits from here on are opened
    };
    struct OfHead { // what one thread knows of one KV head
        std::vector<RowSoftmax> past;
        RunningSoftmax near;         // the window
        RunningSoftmax rest;         // speakers and opened tokens
        std::vector<int32_t> opened; // with room for all of the thread's cells
        int64_t opened_count = 0;
        Buffer opened_weights;         // rows x room: logits, then weights
        std::vector<float> opened_of;  // by cluster: members opened by this thread
        std::vector<float> closed_of;  // by cluster of the thread's share: members still closed
        std::vector<float> opened_sum; // rows x clusters: of their logits
    };
    struct Part {
        std::vector<OfHead> heads;
        std::vector<Gate> gates;   // KV heads x rows; every thread finds the same
        std::vector<float> limits; // by row: weights from here on are opened
        Buffer floats;
        FewScratch scratch;
        JointCounts counts;
    };

    void prepare_part(Part & own, const Attention & attention, int64_t most_cells);
    void score_past(const Attention & attention, const CoveredRun & run, int part, int parts);
    void score_window(const Attention & attention, const CoveredRun & run, int part, int parts);
    void open(const Attention & attention, const CoveredRun & run, float epsilon, int part, int parts);
    Gate gate_of(int64_t head, int64_t row, float epsilon, int parts) const;
    void find_opened(int64_t head, OfHead & of, Part & own, const Share & cells);
    void read_opened(const Attention & attention, const CoveredRun & run, int64_t head, Part & own);
    void speak(const Attention & attention, const CoveredRun & run, int part, int parts);
    void weigh_speakers(const CoveredRun & run, int64_t head, Part & own, const Share & share, int parts);
    void add_opened(const Attention & attention, const CoveredRun & run, int part);
    void merge(int part, int parts);

    float * rough_row(int64_t head, int64_t row) { return rough.get() + (((head * rows) + row) * cells); }
    float * speaker_row(int64_t head, int64_t row) { return speakers.get() + (((head * rows) + row) * clusters); }

    int64_t rows = 0;               // of a KV head
    int64_t cells = 0;              // padded
    int64_t clusters = 0;           // padded
    std::vector<QueryRows> queries; // by KV head
    std::vector<int8_t> rounded;
    std::vector<cover::RoughQuery> rough_queries; // KV heads x rows
    Buffer rough;                                 // logits, then weights relative to the thread's largest
    Buffer speakers; // products with sums of keys, then the weight of a single closed member
    std::vector<Part> part_of;
    JointCounts seen;
};

} // namespace cascade::attend
