#include "attend/kernels/mask.h"

#include <algorithm>
#include <limits>

namespace cascade::attend {

namespace {

constexpr float hidden = -std::numeric_limits<float>::infinity();

bool by_words(const Rows & mask) { return mask.format != Format::other && mask.value_stride == 0; }

template <class Word>
void gather(const char * row, const TokenList & tokens, Word * out) {
    const auto * words = reinterpret_cast<const Word *>(row);
    for (int64_t j = 0; j < tokens.count; j++) {
        out[j] = tokens[j] >= 0 ? words[tokens[j]] : Word(0);
    }
}

} // namespace

void MaskTile::need(const Attention & a, int64_t rows, int64_t columns) {
    if (a.mask.base != nullptr && !by_words(a.mask)) {
        whole.need(a.tokens);
    }
    step = round_up(columns, 2 * row_padding);
    floats.need(rows * step);
    gathered.need(step);
    values.resize(std::max(values.size(), static_cast<size_t>(rows)));
}

Visibility MaskTile::read_one(const QueryRows & queries, int64_t r, const TokenList & tokens, float * out) {
    const Attention & a = queries.attention();
    const Rows & mask = a.mask;
    const int64_t head = queries.head(r) % a.mask_heads;
    const int64_t stream = queries.stream() % a.mask_streams;
    if (!by_words(mask)) {
        mask.read(queries.query(r), head, stream, a.tokens, whole.get());
        for (int64_t j = 0; j < tokens.count; j++) {
            out[j] = tokens[j] >= 0 ? whole.get()[tokens[j]] : 0.0F;
        }
        return queries.ops().visibility(Format::f32, out, tokens.count);
    }
    const char * row = mask.start(queries.query(r), head, stream);
    const void * stored = row + (static_cast<size_t>(tokens.first) * format_bytes(mask.format));
    if (tokens.list != nullptr) {
        mask.format == Format::f32 ? gather(row, tokens, reinterpret_cast<uint32_t *>(gathered.get()))
                                   : gather(row, tokens, reinterpret_cast<uint16_t *>(gathered.get()));
        stored = gathered.get();
    }
    const size_t bytes = static_cast<size_t>(tokens.count) * format_bytes(mask.format);
    for (size_t i = 0; i < bytes && tokens.list == nullptr; i += 64) { // rows stand too far apart to be guessed
        __builtin_prefetch(static_cast<const char *>(stored) + bytes + i);
    }
    const Visibility found = queries.ops().visibility(mask.format, stored, tokens.count);
    if (found != Visibility::clear) {
        queries.ops().to_float(mask.format, stored, tokens.count, out);
    }
    return found;
}

void MaskTile::widen(const float * mask, int64_t columns) {
    int64_t from = 0;
    while (from < first && mask[from] == hidden) {
        from++;
    }
    int64_t to = columns;
    while (to > last && mask[to - 1] == hidden) {
        to--;
    }
    first = std::min(first, from);
    last = std::max(last, to);
}

void MaskTile::read(const QueryRows & queries, const TokenList & tokens) {
    rows_together = queries.rows_of_mask();
    need(queries.attention(), queries.rows() / rows_together, tokens.count);
    first = tokens.count;
    last = 0;
    for (int64_t r = 0; r < queries.rows(); r += rows_together) {
        const int64_t mask = r / rows_together;
        float * out = floats.get() + (mask * step);
        const Visibility found =
            queries.attention().mask.base != nullptr ? read_one(queries, r, tokens, out) : Visibility::clear;
        values[static_cast<size_t>(mask)] = found;
        if (found == Visibility::clear) {
            first = 0;
            last = tokens.count;
            continue;
        }
        std::fill(out + tokens.count, out + step, 0.0F);
        if (found == Visibility::mixed) {
            widen(out, tokens.count);
        }
    }
}

} // namespace cascade::attend
