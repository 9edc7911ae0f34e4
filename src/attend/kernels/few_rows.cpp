#include "attend/kernels/few_rows.h"

#include "attend/kernels/columns.h"

#include <algorithm>
#include <limits>

namespace cascade::attend {

namespace {

constexpr int64_t tokens_padding = 2 * row_padding;
constexpr float hidden = -std::numeric_limits<float>::infinity();

bool readable_as_is(const Rows & rows) { return rows.format != Format::other && rows.value_stride == 0; }

StoredRows stored_rows(const Rows & rows, int64_t head, int64_t stream, int64_t size) {
    return { rows.start(0, head, stream), rows.row_stride, rows.format, size };
}

// Calls use(stored rows, their tokens, number of the first) for all tokens, some at a time where they must be
// converted first.
template <class Use>
void for_stored(const Rows & rows, int64_t head, int64_t stream, int64_t size, const TokenList & tokens,
                Buffer & floats, const Use & use) {
    if (readable_as_is(rows)) {
        use(stored_rows(rows, head, stream, size), tokens, int64_t(0));
        return;
    }
    constexpr int64_t together = 32;
    float * converted = floats.need(together * size);
    const StoredRows stored = { reinterpret_cast<const char *>(converted), static_cast<size_t>(size) * sizeof(float),
                                Format::f32, size };
    for (int64_t j = 0; j < tokens.count; j += together) {
        const TokenList some = tokens.part(j, std::min(together, tokens.count - j));
        read_rows(kernel(), rows, head, stream, some, size, converted, size);
        use(stored, TokenList{ nullptr, 0, some.count }, j);
    }
}

// Biases that hide scores behind the last; nullptr where there are none.
const float * hide_behind(int64_t count, int64_t padded, FewScratch & scratch) {
    if (padded == count) {
        return nullptr;
    }
    float * edge = scratch.edge.get();
    std::fill_n(edge, count, 0.0F);
    std::fill(edge + count, edge + padded, hidden);
    return edge;
}

void attend_few(const QueryRows & queries, const TokenList & tokens, const MaskTile * mask, int64_t offset,
                RunningSoftmax & state, FewScratch & scratch) {
    const Attention & a = queries.attention();
    const int64_t padded = round_up(tokens.count, tokens_padding);
    float * scores = scratch.scores.get();
    dot_rows(a.key, queries.kv_head(), queries.stream(), a.key_size, tokens, queries.row(0), queries.rows(),
             queries.step(), scores, tokens_of_few, scratch.floats);
    const float * edge = hide_behind(tokens.count, padded, scratch);
    for (int64_t r = 0; r < queries.rows(); r++) {
        const float * row_mask = mask != nullptr ? mask->row(r) : nullptr;
        ScoreTerms & terms = scratch.terms[static_cast<size_t>(r)];
        terms.cap = queries.cap();
        terms.bias = edge;
        terms.mask = row_mask != nullptr ? row_mask + offset : nullptr;
        terms.slope = queries.slope(r);
        std::fill(scores + (r * tokens_of_few) + tokens.count, scores + (r * tokens_of_few) + padded, 0.0F);
    }
    queries.ops().weigh(scratch.terms.data(), queries.rows(), padded, scores, tokens_of_few, &state.row(0),
                        scratch.factors.data());
    for (int64_t r = 0; r < queries.rows(); r++) {
        const float factor = scratch.factors[static_cast<size_t>(r)];
        std::transform(state.out(r), state.out(r) + state.width(), state.out(r),
                       [factor](float sum) { return sum * factor; });
    }
    add_rows(a.value, queries.kv_head(), queries.stream(), a.value_size, tokens, scores, queries.rows(), tokens_of_few,
             state.out(0), state.width(), scratch.floats);
}

} // namespace

void dot_rows(const Rows & rows, int64_t head, int64_t stream, int64_t size, const TokenList & tokens,
              const float * queries, int64_t count, int64_t query_step, float * scores, int64_t score_step,
              Buffer & floats) {
    for_stored(rows, head, stream, size, tokens, floats,
               [&](const StoredRows & stored, const TokenList & some, int64_t at) {
                   kernel().dot_rows(stored, some, queries, count, query_step, scores + at, score_step);
               });
}

void add_rows(const Rows & rows, int64_t head, int64_t stream, int64_t size, const TokenList & tokens,
              const float * weights, int64_t count, int64_t weight_step, float * out, int64_t out_step,
              Buffer & floats) {
    for_stored(rows, head, stream, size, tokens, floats,
               [&](const StoredRows & stored, const TokenList & some, int64_t at) {
                   kernel().add_rows(stored, some, weights + at, count, weight_step, out, out_step);
               });
}

void FewScratch::need(const Attention & a, int64_t rows) {
    scores.need(rows * tokens_of_few);
    edge.need(tokens_of_few);
    factors.resize(static_cast<size_t>(rows));
    terms.resize(static_cast<size_t>(rows));
    floats.need(32 * std::max(a.key_size, a.value_size));
    mask.need(a, rows, tokens_of_few);
}

void attend_tokens(const QueryRows & queries, const TokenList & tokens, Masking masking, RunningSoftmax & state,
                   FewScratch & scratch) {
    scratch.need(queries.attention(), queries.rows());
    const bool masked = masking == Masking::by_token && queries.attention().mask.base != nullptr;
    for (int64_t start = 0; start < tokens.count; start += tokens_of_few) {
        const TokenList some = tokens.part(start, std::min(tokens_of_few, tokens.count - start));
        if (!masked) {
            attend_few(queries, some, nullptr, 0, state, scratch);
            continue;
        }
        scratch.mask.read(queries, some);
        const int64_t from = scratch.mask.from() / tokens_padding * tokens_padding;
        if (from < scratch.mask.to()) {
            attend_few(queries, some.part(from, scratch.mask.to() - from), &scratch.mask, from, state, scratch);
        }
    }
}

} // namespace cascade::attend
