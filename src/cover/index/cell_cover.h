// A leader cover of some cells of a cache by their values (the cosine of all heads together), with the sums of what
// each cluster speaks for, kept up to date as cells come and go. Values serve as well as keys before their rotation,
// and unlike those they stand in the cache. Sums are those of the members to the last rounding: a cluster that lost one
// is summed anew.
#pragma once

#include "cover/index/cells.h"

#include <vector>

namespace cascade::cover {

class CellCover {
  public:
    // At most one cluster for each `cells_of_cluster` cells, and never fewer than a few.
    explicit CellCover(const Cells & shape, int64_t cells_of_cluster);

    int64_t cells() const { return static_cast<int64_t>(clusters_of_cells.size()); }
    int64_t covered() const { return members; }
    int64_t clusters() const { return static_cast<int64_t>(counts.size()); }
    bool has(int64_t cell) const { return clusters_of_cells[static_cast<size_t>(cell)] >= 0; }
    int32_t cluster_of(int64_t cell) const { return clusters_of_cells[static_cast<size_t>(cell)]; }
    int32_t count(int64_t cluster) const { return counts[static_cast<size_t>(cluster)]; }

    // 0 for a covered cell, minus infinity for any other; padded to a whole tile.
    const float * closed() const { return closed_bias.data(); }
    const uint8_t * covers() const { return covered_bytes.data(); }

    // clusters x size floats of one head.
    const float * key_sums(int64_t head) const { return keys[static_cast<size_t>(head)].data(); }
    const float * value_sums(int64_t head) const { return values[static_cast<size_t>(head)].data(); }

    void grow(int64_t cells);
    void remove(int64_t cell);
    void clear();

    // Adds cells, none of them covered, in this order. Those with a value that isn't finite are left out and written to
    // `refused`.
    void add(std::span<const int32_t> cells, const Cells & cache, std::vector<int32_t> & refused);

    // Sums the clusters anew that lost a member.
    void repair(const Cells & cache);

    int64_t bytes() const;

  private:
    void choose_threshold(const std::vector<float> & rows, int64_t count);
    int64_t nearest_or_new(const float * row);
    void add_member(int64_t cluster, int64_t cell, const float * key_row, const float * value_row);
    void add_to_sums(int64_t cluster, const float * key_row, const float * value_row);

    int64_t kv_heads;
    int64_t key_size;
    int64_t value_size;
    int64_t cells_of_cluster;
    int64_t members = 0;
    float threshold = 2.0F; // not chosen yet
    std::vector<int32_t> clusters_of_cells;
    std::vector<uint8_t> covered_bytes;
    std::vector<float> closed_bias;
    std::vector<float> centres; // unit rows, clusters x all values of a cell
    std::vector<int32_t> counts;
    std::vector<uint8_t> dirty;
    bool any_dirty = false;
    std::vector<std::vector<float>> keys;   // by head
    std::vector<std::vector<float>> values; // by head
    std::vector<float> unit;
};

} // namespace cascade::cover
