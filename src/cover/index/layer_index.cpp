#include "cover/index/layer_index.h"

#include "cover/index/marked.h"

#include <algorithm>

namespace cascade::cover {

namespace {

constexpr size_t cells_at_once = 512; // that are copied to be indexed

Differences compare(const CellCover & cover, const Seen & seen) {
    return compare_marks(cover.covers(), cover.cells(), seen.by_all.data(), static_cast<int64_t>(seen.by_all.size()));
}

} // namespace

LayerIndex::LayerIndex(const Cells & shape, const IndexOptions & some_options)
    : options(some_options), rough(shape.kv_heads, shape.key_size) {}

void LayerIndex::grow(int64_t cells) {
    rough.grow(cells);
    if (cells > static_cast<int64_t>(written.size())) {
        coded.resize(static_cast<size_t>(cells), 0);
        unreadable.resize(static_cast<size_t>(cells), 0);
        written.resize(static_cast<size_t>(cells), 0); // the last: its size is what counts
    }
}

void LayerIndex::cells_change(std::span<const int64_t> cells) noexcept {
    now++;
    try {
        grow(cells.empty() ? 0 : *std::max_element(cells.begin(), cells.end()) + 1);
    } catch (...) {
        all_change(); // nothing is known of cells that there is no room for
    }
    for (const int64_t cell : cells) {
        if (cell >= 0 && cell < static_cast<int64_t>(written.size())) {
            const auto at = static_cast<size_t>(cell);
            written[at] = now;
            coded[at] = 0;
            unreadable[at] = 0;
            for (CellCover & cover : known) {
                cover.remove(cell);
            }
        }
    }
}

void LayerIndex::all_change() noexcept {
    known.clear();
    std::fill(coded.begin(), coded.end(), uint8_t{ 0 });
    std::fill(unreadable.begin(), unreadable.end(), uint8_t{ 0 });
    rough.forget_mean();
}

// The cover that has the most of what these queries see, and hardly anything that they don't.
LayerIndex::Match LayerIndex::matching_cover(const Seen & seen, const Cells & shape) {
    auto best = known.end();
    Differences of_best;
    for (auto cover = known.begin(); cover != known.end(); ++cover) {
        const Differences of = compare(*cover, seen);
        if (of.only_in_first <= options.slack && (best == known.end() || of.only_in_second < of_best.only_in_second)) {
            of_best = of;
            best = cover;
        }
    }
    if (best == known.end()) {
        while (static_cast<int64_t>(known.size()) >= options.most_covers) {
            known.pop_front();
        }
        known.emplace_back(shape, options.cells_of_cluster);
        best = std::prev(known.end());
        of_best = compare(*best, seen);
    }
    known.splice(known.end(), known, best);
    return { known.back(), of_best.only_in_first, of_best.only_in_second };
}

const CellCover & LayerIndex::cover_for(const Seen & seen, const Cells & cache) {
    try {
        return update(seen, cache);
    } catch (...) {
        all_change(); // what is half done is of no use
        throw;
    }
}

const CellCover & LayerIndex::update(const Seen & seen, const Cells & cache) {
    const auto cells = static_cast<int64_t>(seen.by_all.size());
    grow(cells);
    auto [cover, unseen, uncovered] = matching_cover(seen, cache);
    cover.grow(cells);
    if (unseen > 0) {
        for_each_marked(cover.covers(), cover.cells(), seen.by_all.data(), cells,
                        [&cover = cover](int64_t cell) { cover.remove(cell); });
    }
    if (cover.clusters() > 64 && cover.covered() < 4 * cover.clusters()) { // its centres are of the past
        cover.clear();
        uncovered = compare(cover, seen).only_in_second;
    }
    if (cover.covered() > 0 && uncovered < options.window / 2) {
        uncover_latest(cover, options.window - uncovered);
    } else if (uncovered > options.window + options.slack) {
        cover_oldest(cover, seen, cache);
    }
    cover.repair(cache);
    return cover;
}

// Where the latest cells are taken back, those before them are the latest again, and are to be read exactly.
void LayerIndex::uncover_latest(CellCover & cover, int64_t count) {
    candidates.clear();
    for_each_marked(cover.covers(), cover.cells(), nullptr, 0,
                    [&](int64_t cell) { candidates.push_back(static_cast<int32_t>(cell)); });
    sort_by_age();
    for (; count > 0 && !candidates.empty(); count--) {
        cover.remove(candidates.back());
        candidates.pop_back();
    }
}

void LayerIndex::cover_oldest(CellCover & cover, const Seen & seen, const Cells & cache) {
    candidates.clear();
    candidates.reserve(seen.by_all.size());
    for_each_marked(seen.by_all.data(), static_cast<int64_t>(seen.by_all.size()), cover.covers(), cover.cells(),
                    [&](int64_t cell) {
                        if (unreadable[static_cast<size_t>(cell)] == 0) {
                            candidates.push_back(static_cast<int32_t>(cell));
                        }
                    });
    const auto waiting = static_cast<int64_t>(candidates.size());
    if (waiting <= options.window + options.slack) {
        return;
    }
    sort_by_age();
    const auto oldest = std::span<const int32_t>(candidates).first(static_cast<size_t>(waiting - options.window));
    std::vector<int32_t> refused;
    for (size_t first = 0; first < oldest.size(); first += cells_at_once) {
        const auto some = oldest.subspan(first, std::min(cells_at_once, oldest.size() - first));
        write_rough(some, cache);
        cover.add(some, cache, refused);
    }
    for (const int32_t cell : refused) {
        unreadable[static_cast<size_t>(cell)] = 1;
    }
}

void LayerIndex::sort_by_age() {
    std::stable_sort(candidates.begin(), candidates.end(), [&](int32_t a, int32_t b) {
        return written[static_cast<size_t>(a)] < written[static_cast<size_t>(b)];
    });
}

void LayerIndex::write_rough(std::span<const int32_t> cells, const Cells & cache) {
    const int64_t values = cache.keys_of_cell();
    std::vector<float> keys(cells.size() * static_cast<size_t>(values));
    for (size_t i = 0; i < cells.size(); i++) {
        cache.read_keys(cells[i], keys.data() + (static_cast<int64_t>(i) * values));
    }
    if (!rough.has_mean()) {
        rough.set_mean(keys.data(), static_cast<int64_t>(cells.size()));
    }
    for (size_t i = 0; i < cells.size(); i++) {
        const auto cell = static_cast<size_t>(cells[i]);
        for (int64_t head = 0; head < cache.kv_heads && coded[cell] == 0; head++) {
            rough.write(head, cells[i], keys.data() + (static_cast<int64_t>(i) * values) + (head * cache.key_size));
        }
        coded[cell] = 1;
    }
}

int64_t LayerIndex::bytes() const {
    int64_t sum = rough.bytes() + (static_cast<int64_t>(written.size()) * 6);
    for (const CellCover & cover : known) {
        sum += cover.bytes();
    }
    return sum;
}

} // namespace cascade::cover
