#include "attend/kernels/tiles.h"

#include <algorithm>

namespace cascade::attend {

namespace {

constexpr int64_t packs_together = 2; // share a panel while it is in the nearest cache

// Panels first, …, first + panels - 1 of the columns; `mask` is nullptr where all is visible.
struct Tile {
    const QueryRows & queries;
    const Columns & columns;
    const MaskTile * mask;
    int64_t offset; // of its first column in the mask
    int64_t first;
    int64_t panels;

    int64_t first_column() const { return first * columns.ops().columns; }
    int64_t column_count() const { return panels * columns.ops().columns; }
};

void multiply(const Tile & tile, int64_t pack, int64_t packs, float * scores) {
    const Kernel & ops = tile.columns.ops();
    for (int64_t panel = 0; panel < tile.panels; panel++) {
        for (int64_t p = 0; p < packs; p++) {
            ops.multiply(tile.queries.attention().key_size, tile.queries.pack(pack + p),
                         tile.columns.panel(tile.first + panel),
                         scores + (p * ops.rows * tile_columns) + (panel * ops.columns));
        }
    }
}

void weigh(const Tile & tile, int64_t row, int64_t rows, RunningSoftmax & state, TileScratch & scratch) {
    for (int64_t r = 0; r < rows; r++) {
        const float * mask = tile.mask != nullptr ? tile.mask->row(row + r) : nullptr;
        ScoreTerms & terms = scratch.terms[static_cast<size_t>(r)];
        terms.cap = tile.queries.cap();
        terms.bias = tile.columns.biases(tile.first_column());
        terms.mask = mask != nullptr ? mask + tile.offset : nullptr;
        terms.slope = tile.queries.slope(row + r);
    }
    tile.columns.ops().weigh(scratch.terms.data(), rows, tile.column_count(), scratch.scores.get(), tile_columns,
                             &state.row(row), scratch.factors.data());
}

void attend_tile(const Tile & tile, RunningSoftmax & state, TileScratch & scratch) {
    const Kernel & ops = tile.columns.ops();
    for (int64_t pack = 0; pack < tile.queries.packs(); pack += packs_together) {
        const int64_t packs = std::min(packs_together, tile.queries.packs() - pack);
        const int64_t row = pack * ops.rows;
        std::fill(scratch.factors.begin(), scratch.factors.end(), 1.0F);
        multiply(tile, pack, packs, scratch.scores.get());
        weigh(tile, row, std::min(packs * ops.rows, tile.queries.rows() - row), state, scratch);
        for (int64_t p = 0; p < packs; p++) {
            ops.add_values(tile.column_count(), scratch.scores.get() + (p * ops.rows * tile_columns),
                           tile.columns.value(tile.first_column()), tile.columns.width(),
                           scratch.factors.data() + (p * ops.rows), state.out(row + (p * ops.rows)));
        }
    }
}

} // namespace

void TileScratch::need(const Attention & a, int64_t rows) {
    const int64_t together = packs_together * kernel().rows;
    scores.need(together * tile_columns);
    factors.resize(static_cast<size_t>(together));
    terms.resize(static_cast<size_t>(together));
    mask.need(a, rows, tile_columns);
}

void attend_columns(const QueryRows & queries, const Columns & columns, Masking masking, RunningSoftmax & state,
                    TileScratch & scratch) {
    scratch.need(queries.attention(), queries.rows());
    const int64_t across = columns.ops().columns;
    const bool masked = masking == Masking::by_token && queries.attention().mask.base != nullptr;
    for (int64_t start = 0; start < columns.count(); start += tile_columns) {
        const int64_t n = std::min(tile_columns, columns.count() - start);
        int64_t from = 0;
        int64_t to = n;
        if (masked) {
            scratch.mask.read(queries, columns.tokens(start, n));
            from = scratch.mask.from() / across * across;
            to = scratch.mask.to();
        }
        if (from >= to) {
            scratch.skipped++;
            continue;
        }
        scratch.multiplied++;
        const Tile tile = { queries,
                            columns,
                            masked ? &scratch.mask : nullptr,
                            from,
                            (start + from) / across,
                            round_up(to - from, across) / across };
        attend_tile(tile, state, scratch);
    }
}

} // namespace cascade::attend
