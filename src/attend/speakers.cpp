#include "attend/speakers.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace cascade::attend {

Groups clusters_of(const Cover & cover) {
    Groups groups;
    groups.count = static_cast<int32_t>(cover.size());
    groups.of.reserve(cover.assigned.size());
    for (const int32_t representative : cover.assigned) {
        const auto place = std::lower_bound(cover.representatives.begin(), cover.representatives.end(), representative);
        groups.of.push_back(static_cast<int32_t>(place - cover.representatives.begin()));
    }
    return groups;
}

Groups blocks_of(int64_t past, int64_t block) {
    Groups groups;
    groups.count = static_cast<int32_t>((past + block - 1) / block);
    groups.of.reserve(static_cast<size_t>(past));
    for (int64_t token = 0; token < past; token++) {
        groups.of.push_back(static_cast<int32_t>(token / block));
    }
    return groups;
}

Groups random_groups(int64_t past, int64_t count, uint64_t seed) {
    // Group g has one sure member; the others fall where a multiplicative hash of their number puts them.
    const std::vector<int32_t> sure = random_representatives(past, count, seed);
    Groups groups;
    groups.count = static_cast<int32_t>(count);
    groups.of.assign(static_cast<size_t>(past), 0);
    for (int64_t token = 0; token < past; token++) {
        uint64_t mixed = (static_cast<uint64_t>(token) + seed + 1) * 0x9E3779B97F4A7C15U;
        mixed = (mixed ^ (mixed >> 29U)) * 0xBF58476D1CE4E5B9U;
        groups.of[static_cast<size_t>(token)] =
            static_cast<int32_t>((mixed >> 33U) % static_cast<uint64_t>(std::max<int64_t>(count, 1)));
    }
    for (size_t group = 0; group < sure.size(); group++) {
        groups.of[static_cast<size_t>(sure[group])] = static_cast<int32_t>(group);
    }
    return groups;
}

void add_speakers(const Block & block, const Groups & groups, Selection & selection) {
    std::vector<uint8_t> open(static_cast<size_t>(block.past), 0);
    for (const int32_t token : selection.opened) {
        open[static_cast<size_t>(token)] = 1;
    }
    std::vector<std::vector<int32_t>> members(static_cast<size_t>(groups.count));
    for (int32_t token = 0; token < block.past; token++) {
        if (open[static_cast<size_t>(token)] == 0) {
            members[static_cast<size_t>(groups.of[static_cast<size_t>(token)])].push_back(token);
        }
    }
    const auto add_mean = [](const std::vector<int32_t> & of, const float * rows, int64_t size,
                             std::vector<float> & out) {
        std::vector<double> sum(static_cast<size_t>(size), 0.0);
        for (const int32_t token : of) {
            for (int64_t i = 0; i < size; i++) {
                sum[static_cast<size_t>(i)] += rows[(token * size) + i];
            }
        }
        for (const double value : sum) {
            out.push_back(static_cast<float>(value / static_cast<double>(of.size())));
        }
    };
    for (const std::vector<int32_t> & closed : members) {
        if (!closed.empty()) {
            add_mean(closed, block.key, block.key_size, selection.keys);
            add_mean(closed, block.value, block.value_size, selection.values);
            selection.log_counts.push_back(std::log(static_cast<float>(closed.size())));
        }
    }
}

void open_in_order(const std::vector<int32_t> & order, const Groups & groups, int64_t budget, Selection & selection) {
    std::vector<int32_t> closed(static_cast<size_t>(groups.count), 0);
    for (const int32_t group : groups.of) {
        closed[static_cast<size_t>(group)]++;
    }
    int64_t left = budget - (groups.count - std::count(closed.begin(), closed.end(), 0));
    for (const int32_t token : order) {
        int32_t * others =
            groups.count > 0 ? &closed[static_cast<size_t>(groups.of[static_cast<size_t>(token)])] : nullptr;
        const int64_t cost = others != nullptr && *others == 1 ? 0 : 1;
        if (cost > left) {
            break;
        }
        left -= cost;
        selection.opened.push_back(token);
        if (others != nullptr) {
            (*others)--;
        }
    }
    std::sort(selection.opened.begin(), selection.opened.end());
}

std::vector<int32_t> by_falling(std::span<const float> scores) {
    std::vector<int32_t> order(scores.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
        return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
    });
    return order;
}

} // namespace cascade::attend
