#include "attend/joint/cluster_means.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cascade::attend {

void ClusterMeans::fill_keys(const CoveredRun & run, const Attention & a, int64_t head, Columns & columns) {
    const int64_t clusters = run.cover->clusters();
    keys.resize(static_cast<size_t>(clusters * a.key_size));
    values.assign(static_cast<size_t>(clusters * row_padding), 0.0F);
    counts.resize(static_cast<size_t>(clusters));
    for (int64_t c = 0; c < clusters; c++) {
        const auto count = static_cast<float>(run.cover->count(c));
        counts[static_cast<size_t>(c)] = count > 0.0F ? std::log(count) : -std::numeric_limits<float>::infinity();
        const float * sums = run.cover->key_sums(head) + (c * a.key_size);
        for (int64_t i = 0; i < a.key_size; i++) {
            keys[static_cast<size_t>((c * a.key_size) + i)] = count > 0.0F ? sums[i] / count : 0.0F;
        }
    }
    columns.reset(clusters, a.key_size, row_padding, Columns::Biases::all);
    columns.fill(0, keys.data(), values.data(), clusters);
    columns.set_biases(0, counts.data(), clusters);
}

void ClusterMeans::sum_closed(const CoveredRun & run, const Attention & a, int64_t head,
                              std::span<const int32_t> opened) {
    const int64_t clusters = run.cover->clusters();
    keys.assign(run.cover->key_sums(head), run.cover->key_sums(head) + (clusters * a.key_size));
    values.assign(run.cover->value_sums(head), run.cover->value_sums(head) + (clusters * a.value_size));
    counts.resize(static_cast<size_t>(clusters));
    row.resize(static_cast<size_t>(std::max(a.key_size, a.value_size)));
    for (int64_t c = 0; c < clusters; c++) {
        counts[static_cast<size_t>(c)] = static_cast<float>(run.cover->count(c));
    }
    const auto take = [&](const Rows & rows, int64_t cell, int64_t size, float * sums) {
        read_row(kernel(), rows, cell, head, run.queries->stream, size, row.data());
        for (int64_t i = 0; i < size; i++) {
            sums[i] -= row[static_cast<size_t>(i)];
        }
    };
    for (const int32_t cell : opened) {
        const int64_t c = run.cover->cluster_of(cell);
        take(a.key, cell, a.key_size, keys.data() + (c * a.key_size));
        take(a.value, cell, a.value_size, values.data() + (c * a.value_size));
        counts[static_cast<size_t>(c)] -= 1.0F;
    }
}

// Moves those to the front that have somebody left.
int64_t ClusterMeans::sums_to_means(int64_t key_size, int64_t value_size) {
    const auto divide = [](std::vector<float> & rows, size_t from, int64_t to, int64_t size, float count) {
        for (int64_t i = 0; i < size; i++) {
            rows[static_cast<size_t>((to * size) + i)] =
                rows[(from * static_cast<size_t>(size)) + static_cast<size_t>(i)] / count;
        }
    };
    int64_t speaking = 0;
    for (size_t c = 0; c < counts.size(); c++) {
        const float count = counts[c];
        if (count < 0.5F) {
            continue;
        }
        divide(keys, c, speaking, key_size, count);
        divide(values, c, speaking, value_size, count);
        counts[static_cast<size_t>(speaking)] = std::log(count);
        speaking++;
    }
    return speaking;
}

int64_t ClusterMeans::fill_closed(const CoveredRun & run, const Attention & a, int64_t head,
                                  std::span<const int32_t> opened, Columns & columns) {
    sum_closed(run, a, head, opened);
    const int64_t speaking = sums_to_means(a.key_size, a.value_size);
    const auto tokens = static_cast<int64_t>(opened.size());
    columns.reset(tokens + speaking, a.key_size, a.value_size, Columns::Biases::all);
    columns.fill(tokens, keys.data(), values.data(), speaking);
    columns.set_biases(tokens, counts.data(), speaking);
    return speaking;
}

} // namespace cascade::attend
