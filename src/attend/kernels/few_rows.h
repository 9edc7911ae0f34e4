// Few query rows against stored rows as they are: no packing, one pass over the cache.
#pragma once

#include "attend/kernels/mask.h"
#include "attend/kernels/running_softmax.h"
#include "attend/kernels/tiles.h"

namespace cascade::attend {

// Tokens between two looks at the softmax.
constexpr int64_t tokens_of_few = 256;

// scores[i * score_step + j] = <query i, row tokens[j] of one head>. Queries are padded with zeros to row_padding.
// `floats` is for formats without vector instructions of their own.
void dot_rows(const Rows & rows, int64_t head, int64_t stream, int64_t size, const TokenList & tokens,
              const float * queries, int64_t count, int64_t query_step, float * scores, int64_t score_step,
              Buffer & floats);

// out[i * out_step …] += weights[i * weight_step + j] * row tokens[j].
void add_rows(const Rows & rows, int64_t head, int64_t stream, int64_t size, const TokenList & tokens,
              const float * weights, int64_t count, int64_t weight_step, float * out, int64_t out_step,
              Buffer & floats);

// One thread's memory.
struct FewScratch {
    Buffer scores;
    Buffer edge;
    Buffer floats;
    std::vector<float> factors;
    std::vector<ScoreTerms> terms;
    MaskTile mask;

    // So that attend_tokens allocates nothing for so many rows; may throw std::bad_alloc.
    void need(const Attention & a, int64_t rows);
};

// Folds tokens of the queries' KV head into their softmax; `queries` in QueryLayout::rows. The mask is that of
// the queries' attention.
void attend_tokens(const QueryRows & queries, const TokenList & tokens, Masking masking, RunningSoftmax & state,
                   FewScratch & scratch);

} // namespace cascade::attend
