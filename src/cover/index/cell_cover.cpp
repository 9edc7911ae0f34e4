#include "cover/index/cell_cover.h"

#include "cascade/cover.h"
#include "cover/index/magnitude.h"
#include "cover/index/nearest.h"
#include "cover/index/rough_keys.h"
#include "cover/unit_row.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cascade::cover {

namespace {

constexpr int64_t fewest_clusters = 16;
constexpr int64_t first_cells_of_cluster = 16;
constexpr float outside = -std::numeric_limits<float>::infinity();

} // namespace

CellCover::CellCover(const Cells & shape, int64_t cells_of_a_cluster)
    : kv_heads(shape.kv_heads), key_size(shape.key_size), value_size(shape.value_size),
      cells_of_cluster(cells_of_a_cluster), keys(static_cast<size_t>(shape.kv_heads)),
      values(static_cast<size_t>(shape.kv_heads)), unit(static_cast<size_t>(shape.values_of_cell())) {}

void CellCover::grow(int64_t wanted) {
    if (wanted > cells()) {
        const auto size = static_cast<size_t>((wanted + cells_together - 1) / cells_together * cells_together);
        closed_bias.resize(size, outside);
        covered_bytes.resize(size, 0);
        clusters_of_cells.resize(size, -1);
    }
}

void CellCover::remove(int64_t cell) {
    const auto at = static_cast<size_t>(cell);
    if (cell >= cells() || clusters_of_cells[at] < 0) {
        return;
    }
    const auto cluster = static_cast<size_t>(clusters_of_cells[at]);
    clusters_of_cells[at] = -1;
    covered_bytes[at] = 0;
    closed_bias[at] = outside;
    counts[cluster]--;
    dirty[cluster] = 1;
    any_dirty = true;
    members--;
}

void CellCover::clear() {
    std::fill(clusters_of_cells.begin(), clusters_of_cells.end(), -1);
    std::fill(covered_bytes.begin(), covered_bytes.end(), uint8_t{ 0 });
    std::fill(closed_bias.begin(), closed_bias.end(), outside);
    centres.clear();
    counts.clear();
    dirty.clear();
    any_dirty = false;
    members = 0;
    threshold = 2.0F;
    for (int64_t head = 0; head < kv_heads; head++) {
        keys[static_cast<size_t>(head)].clear();
        values[static_cast<size_t>(head)].clear();
    }
}

// The threshold that gives the first cells a cluster for each few of them: later ones mostly find one that is near, and
// there the bound on clusters takes over.
void CellCover::choose_threshold(const std::vector<float> & rows, int64_t count) {
    const int64_t size = kv_heads * value_size;
    const TokenRows tokens = { rows.data(), count, size, size };
    Team alone(1);
    double tau = 0.7;
    sized_cover(tokens, std::max<int64_t>(1, count / first_cells_of_cluster), Sign::kept, tau, alone);
    threshold = CoverOptions{ tau, Sign::kept }.threshold();
}

int64_t CellCover::nearest_or_new(const float * row) {
    const int64_t size = kv_heads * value_size;
    write_unit_row_inline(row, size, unit.data(), segment);
    const Nearest nearest = nearest_row(unit.data(), centres.data(), clusters(), size);
    const int64_t most = std::max(fewest_clusters, (members + 1) / cells_of_cluster);
    if (nearest.row >= 0 && (nearest.product >= threshold || clusters() >= most)) {
        return nearest.row;
    }
    centres.insert(centres.end(), unit.begin(), unit.end());
    counts.push_back(0);
    dirty.push_back(0);
    for (int64_t head = 0; head < kv_heads; head++) {
        auto & key_rows = keys[static_cast<size_t>(head)];
        auto & value_rows = values[static_cast<size_t>(head)];
        key_rows.resize(key_rows.size() + static_cast<size_t>(key_size), 0.0F);
        value_rows.resize(value_rows.size() + static_cast<size_t>(value_size), 0.0F);
    }
    return clusters() - 1;
}

void CellCover::add_to_sums(int64_t cluster, const float * key_row, const float * value_row) {
    for (int64_t head = 0; head < kv_heads; head++) {
        float * key_sum = keys[static_cast<size_t>(head)].data() + (cluster * key_size);
        float * value_sum = values[static_cast<size_t>(head)].data() + (cluster * value_size);
        for (int64_t i = 0; i < key_size; i++) {
            key_sum[i] += key_row[(head * key_size) + i];
        }
        for (int64_t i = 0; i < value_size; i++) {
            value_sum[i] += value_row[(head * value_size) + i];
        }
    }
}

void CellCover::add_member(int64_t cluster, int64_t cell, const float * key_row, const float * value_row) {
    const auto at = static_cast<size_t>(cell);
    clusters_of_cells[at] = static_cast<int32_t>(cluster);
    covered_bytes[at] = 1;
    closed_bias[at] = 0.0F;
    counts[static_cast<size_t>(cluster)]++;
    members++;
    add_to_sums(cluster, key_row, value_row);
}

void CellCover::add(std::span<const int32_t> added, const Cells & cache, std::vector<int32_t> & refused) {
    const int64_t size = cache.values_of_cell();
    std::vector<float> rows(added.size() * static_cast<size_t>(size));
    for (size_t i = 0; i < added.size(); i++) {
        cache.read_values(added[i], rows.data() + (static_cast<int64_t>(i) * size));
    }
    if (threshold > 1.0F) {
        choose_threshold(rows, static_cast<int64_t>(added.size()));
    }
    std::vector<float> key_row(static_cast<size_t>(cache.keys_of_cell()));
    for (size_t i = 0; i < added.size(); i++) {
        const float * value_row = rows.data() + (static_cast<int64_t>(i) * size);
        cache.read_keys(added[i], key_row.data());
        if (!all_finite(key_row.data(), cache.keys_of_cell()) || !all_finite(value_row, size)) {
            refused.push_back(added[i]);
            continue;
        }
        add_member(nearest_or_new(value_row), added[i], key_row.data(), value_row);
    }
}

void CellCover::repair(const Cells & cache) {
    if (!any_dirty) {
        return;
    }
    for (int64_t cluster = 0; cluster < clusters(); cluster++) {
        for (int64_t head = 0; head < kv_heads && dirty[static_cast<size_t>(cluster)] != 0; head++) {
            std::fill_n(keys[static_cast<size_t>(head)].begin() + (cluster * key_size), key_size, 0.0F);
            std::fill_n(values[static_cast<size_t>(head)].begin() + (cluster * value_size), value_size, 0.0F);
        }
    }
    std::vector<float> key_row(static_cast<size_t>(cache.keys_of_cell()));
    std::vector<float> value_row(static_cast<size_t>(cache.values_of_cell()));
    for (int64_t cell = 0; cell < cells(); cell++) {
        const int32_t cluster = clusters_of_cells[static_cast<size_t>(cell)];
        if (cluster >= 0 && dirty[static_cast<size_t>(cluster)] != 0) {
            cache.read_keys(cell, key_row.data());
            cache.read_values(cell, value_row.data());
            add_to_sums(cluster, key_row.data(), value_row.data());
        }
    }
    std::fill(dirty.begin(), dirty.end(), uint8_t{ 0 });
    any_dirty = false;
}

int64_t CellCover::bytes() const {
    const int64_t of_cell = sizeof(int32_t) + sizeof(float) + 1;
    const int64_t of_cluster = (kv_heads * (key_size + (2 * value_size)) + 2) * static_cast<int64_t>(sizeof(float));
    return (cells() * of_cell) + (clusters() * of_cluster);
}

} // namespace cascade::cover
