// What is known of the cells of one layer's cache: rough keys, and a cover for each group of queries that sees cells of
// its own (a sequence, in the engine's words; here only what masks show).
//
// The index holds nothing that it did not read from the cells themselves, and forgets a cell when it is told that the
// cell changes. A cell that isn't covered is to be read exactly, so forgetting is always right.
#pragma once

#include "cover/index/cell_cover.h"
#include "cover/index/rough_keys.h"

#include <list>

namespace cascade::cover {

struct IndexOptions {
    int64_t window = 512;          // latest cells that stay uncovered
    int64_t slack = 128;           // further ones that may wait to be covered together
    int64_t cells_of_cluster = 64; // at least, on average
    int64_t most_covers = 8;
};

class LayerIndex {
  public:
    // The shape's rows are not kept. Throws std::bad_alloc, here and wherever it grows.
    LayerIndex(const Cells & shape, const IndexOptions & options);

    static bool fits(const Cells & shape) { return RoughKeys::fits(shape.key_size) && shape.value_size > 0; }

    // Cells are about to be written, later than all others so far.
    void cells_change(std::span<const int64_t> cells) noexcept;
    void all_change() noexcept;

    // The cover for queries that see this, brought up to date; every covered cell is seen by all of them.
    const CellCover & cover_for(const Seen & seen, const Cells & cache);

    const RoughKeys & rough_keys() const { return rough; }
    int64_t bytes() const;
    int64_t covers() const { return static_cast<int64_t>(known.size()); }

  private:
    struct Match {
        CellCover & cover;
        int64_t unseen;    // cells of it that the queries don't see
        int64_t uncovered; // cells that they see and it doesn't have
    };

    void grow(int64_t cells);
    const CellCover & update(const Seen & seen, const Cells & cache);
    Match matching_cover(const Seen & seen, const Cells & shape);
    void uncover_latest(CellCover & cover, int64_t count);
    void cover_oldest(CellCover & cover, const Seen & seen, const Cells & cache);
    void sort_by_age(); // candidates
    void write_rough(std::span<const int32_t> cells, const Cells & cache);

    IndexOptions options;
    RoughKeys rough;
    std::list<CellCover> known;      // the latest used last
    std::vector<uint32_t> written;   // by cell: when, counted in calls of cells_change; 0: before we knew
    std::vector<uint8_t> coded;      // by cell: its rough key is up to date
    std::vector<uint8_t> unreadable; // by cell: has a value that isn't finite
    uint32_t now = 0;
    std::vector<int32_t> candidates;
};

} // namespace cascade::cover
