// Many query rows against columns: tiles of products, a softmax that runs along, and tiles of weighted values.
#pragma once

#include "attend/kernels/columns.h"
#include "attend/kernels/mask.h"
#include "attend/kernels/running_softmax.h"

namespace cascade::attend {

// One thread's memory, and what it did.
struct TileScratch {
    Buffer scores;
    std::vector<float> factors;
    std::vector<ScoreTerms> terms;
    MaskTile mask;
    int64_t multiplied = 0; // tiles
    int64_t skipped = 0;    // tiles that no row of the block saw

    // So that attend_columns allocates nothing for so many rows; may throw std::bad_alloc.
    void need(const Attention & a, int64_t rows);
};

enum class Masking : bool { none, by_token };

// Folds the columns into the rows' softmax. The mask is that of the queries' attention, looked up by token number.
void attend_columns(const QueryRows & queries, const Columns & columns, Masking masking, RunningSoftmax & state,
                    TileScratch & scratch);

} // namespace cascade::attend
