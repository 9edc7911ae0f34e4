// The index of a living cache, after any history of writes and of what is seen: against sums over the cache itself.
#include "cover/index/layer_index.h"
#include "support/made_cache.h"
#include "support/scarce_memory.h"

#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <string>

namespace cascade::cover {
namespace {

using test::between;
using test::coin;
using test::one_of;
using test::Random;

struct Cell {
    uint32_t sequences = 0; // a bit for each that sees it
    int64_t written = 0;    // order of the write
    bool finite = true;
};

// What an engine does to one layer's cache, and what the index must know of it.
class History {
  public:
    explicit History(Random & a_random)
        : random(a_random), options(some_options(random)), cache(some_shape(random), random),
          cells(static_cast<size_t>(cache.shape().cells)), index(cache.cells(0), options) {}

    void step() {
        switch (between(random, 0, 9)) {
        case 0:
            return hide_range();
        case 1:
            return share_range();
        case 2:
            return coin(random, 0.2) ? rewrite_all() : overwrite(between(random, 1, 4));
        default:
            return append(between(random, 1, 40));
        }
    }

    // Changes covered cells and says nothing.
    void forget_to_tell() {
        for (int64_t cell = 0; cell < visible; cell++) {
            if (cover->has(cell)) {
                cache.write(0, cell, random);
            }
        }
    }

    // Queries of one sequence ask; what is wrong with the answer, or nothing.
    std::string ask() {
        look(static_cast<uint32_t>(between(random, 0, sequences - 1)));
        cover = &index.cover_for({ by_all, by_some }, cache.cells(0));
        std::string wrong = check();
        before[cover].assign(cover->covers(), cover->covers() + cover->cells());
        return wrong;
    }

    std::string check() const {
        for (const auto & found : { wrong_cells(), wrong_order(), wrong_sums(), wrong_rough_keys(), wrong_size() }) {
            if (!found.empty()) {
                return found;
            }
        }
        return {};
    }

    const CellCover & latest() const { return *cover; }
    int64_t visible_cells() const { return visible; }
    LayerIndex & layer() { return index; }

  private:
    static constexpr int64_t sequences = 4;

    static IndexOptions some_options(Random & random) {
        IndexOptions o;
        o.window = between(random, 0, 40);
        o.slack = between(random, 0, 20);
        o.cells_of_cluster = between(random, 1, 12);
        o.most_covers = between(random, 1, 5);
        return o;
    }

    static test::CacheShape some_shape(Random & random) {
        test::CacheShape s;
        s.cells = between(random, 100, 400);
        s.kv_heads = between(random, 1, 3);
        s.key_size = 8 * between(random, 1, 5);
        s.value_size = coin(random, 0.6) ? s.key_size : between(random, 1, 40);
        s.format = one_of(random, { Format::f32, Format::f16, Format::bf16, Format::other });
        s.heads_inside = coin(random, 0.5);
        return s;
    }

    void write(std::span<const int64_t> changed, uint32_t seen_by) {
        index.cells_change(changed);
        order++;
        for (const int64_t cell : changed) {
            cache.write(0, cell, random);
            Cell & of = cells[static_cast<size_t>(cell)];
            of = { seen_by, order, true };
            if (cache.shape().format != Format::other && coin(random, 0.02)) {
                cache.spoil(0, cell, random);
                of.finite = false;
            }
        }
    }

    // Free cells in order, then free ones at random, then any: as caches fill up and are used again.
    void append(int64_t count) {
        std::vector<int64_t> changed;
        const int64_t from = coin(random, 0.7) ? 0 : between(random, 0, cache.shape().cells - 1);
        for (int64_t i = 0; i < cache.shape().cells && static_cast<int64_t>(changed.size()) < count; i++) {
            const int64_t cell = (from + i) % cache.shape().cells;
            if (cells[static_cast<size_t>(cell)].sequences == 0) {
                changed.push_back(cell);
            }
        }
        if (changed.empty()) {
            return overwrite(count);
        }
        write(changed, 1U << static_cast<uint32_t>(between(random, 0, sequences - 1)));
        visible = std::max(visible, *std::max_element(changed.begin(), changed.end()) + 1);
    }

    void overwrite(int64_t count) {
        std::vector<int64_t> changed;
        for (int64_t i = 0; i < count && visible > 0; i++) {
            changed.push_back(between(random, 0, visible - 1));
        }
        write(changed, static_cast<uint32_t>(between(random, 0, 15)));
    }

    void hide_range() {
        const auto gone = static_cast<uint32_t>(between(random, 1, 15));
        const int64_t first = between(random, 0, visible);
        for (int64_t cell = first; cell < std::min(visible, first + between(random, 1, 60)); cell++) {
            cells[static_cast<size_t>(cell)].sequences &= ~gone;
        }
    }

    void share_range() {
        const uint32_t from = 1U << static_cast<uint32_t>(between(random, 0, 3));
        const uint32_t to = 1U << static_cast<uint32_t>(between(random, 0, 3));
        const int64_t last = between(random, 0, visible);
        for (int64_t cell = 0; cell < last; cell++) {
            cells[static_cast<size_t>(cell)].sequences |=
                (cells[static_cast<size_t>(cell)].sequences & from) != 0 ? to : 0;
        }
    }

    void rewrite_all() {
        index.all_change();
        before.clear();
        for (int64_t cell = 0; cell < visible; cell++) {
            cache.write(0, cell, random);
            cells[static_cast<size_t>(cell)].finite = true;
        }
    }

    void look(uint32_t sequence) {
        by_all.assign(static_cast<size_t>(visible), 0);
        by_some.assign(static_cast<size_t>(visible), 0);
        for (int64_t i = 0; i < visible; i++) {
            const auto at = static_cast<size_t>(i);
            by_some[at] = (cells[at].sequences >> sequence) & 1U;
            const bool is_new = cells[at].written == order;
            by_all[at] = by_some[at] != 0 && !(is_new && coin(random, 0.5)) && !coin(random, 0.003) ? 1 : 0;
        }
    }

    std::string wrong_cells() const {
        int64_t covered = 0;
        int64_t waiting = 0;
        std::vector<int32_t> counts(static_cast<size_t>(cover->clusters()), 0);
        for (int64_t i = 0; i < cover->cells(); i++) {
            const auto at = static_cast<size_t>(i);
            const bool has = cover->has(i);
            if ((cover->covers()[i] != 0) != has || (cover->closed()[i] == 0.0F) != has ||
                (cover->closed()[i] == test::hidden) == has) {
                return "lists of covered cells differ";
            }
            if (has && (i >= visible || by_all[at] == 0)) {
                return "covers a cell that isn't seen";
            }
            if (has && !cells[at].finite) {
                return "covers a cell with values that aren't finite";
            }
            if (has && cover->cluster_of(i) >= cover->clusters()) {
                return "cluster that isn't there";
            }
            covered += has ? 1 : 0;
            waiting += !has && i < visible && by_all[at] != 0 && cells[at].finite ? 1 : 0;
            if (has) {
                counts[static_cast<size_t>(cover->cluster_of(i))]++;
            }
        }
        for (int64_t c = 0; c < cover->clusters(); c++) {
            if (counts[static_cast<size_t>(c)] != cover->count(c)) {
                return "counts differ";
            }
        }
        if (waiting > options.window + options.slack) {
            return "too many cells are left to be read exactly";
        }
        return covered == cover->covered() && cover->cells() >= visible ? "" : "number of covered cells differs";
    }

    // A cell that has just been covered had a whole window of later ones.
    std::string wrong_order() const {
        const auto known = before.find(cover);
        for (int64_t cell = 0; cell < visible; cell++) {
            const bool was = known != before.end() && cell < static_cast<int64_t>(known->second.size()) &&
                             known->second[static_cast<size_t>(cell)] != 0;
            if (!cover->has(cell) || was) {
                continue;
            }
            int64_t later = 0;
            for (int64_t other = 0; other < visible; other++) {
                const auto at = static_cast<size_t>(other);
                const bool is_later =
                    std::pair(cells[at].written, other) > std::pair(cells[static_cast<size_t>(cell)].written, cell);
                later += by_all[at] != 0 && !cover->has(other) && is_later ? 1 : 0;
            }
            if (later < options.window) {
                return "covers a cell of the window";
            }
        }
        return {};
    }

    std::string wrong_sums() const {
        const test::CacheShape & s = cache.shape();
        for (int64_t head = 0; head < s.kv_heads; head++) {
            if (!sums_are(cache.key_rows(), head, s.key_size, cover->key_sums(head)) ||
                !sums_are(cache.value_rows(), head, s.value_size, cover->value_sums(head))) {
                return "sums are not those of the members";
            }
        }
        return {};
    }

    bool sums_are(const Rows & rows, int64_t head, int64_t size, const float * found) const {
        const auto n = static_cast<size_t>(cover->clusters() * size);
        std::vector<double> sums(n, 0.0);
        std::vector<double> magnitudes(n, 0.0);
        std::vector<float> row(static_cast<size_t>(size));
        for (int64_t cell = 0; cell < visible; cell++) {
            if (cover->has(cell)) {
                rows.read(cell, head, 0, size, row.data());
                for (int64_t i = 0; i < size; i++) {
                    const auto at = static_cast<size_t>((cover->cluster_of(cell) * size) + i);
                    sums[at] += row[static_cast<size_t>(i)];
                    magnitudes[at] += std::fabs(row[static_cast<size_t>(i)]);
                }
            }
        }
        for (size_t i = 0; i < n; i++) {
            if (!(std::fabs(sums[i] - found[i]) <= 1e-5 * magnitudes[i])) {
                return false;
            }
        }
        return true;
    }

    std::string wrong_rough_keys() const {
        const test::CacheShape & s = cache.shape();
        std::vector<float> query(static_cast<size_t>(s.key_size));
        std::vector<float> key(query.size());
        std::vector<int8_t> bytes(query.size());
        for (size_t i = 0; i < query.size(); i++) {
            query[i] = std::sin(static_cast<float>(1 + i));
        }
        const int64_t tiles = (visible + cells_of_tile - 1) / cells_of_tile;
        std::vector<float> logits(static_cast<size_t>(tiles * cells_of_tile));
        for (int64_t head = 0; head < s.kv_heads && cover->covered() > 0; head++) {
            const RoughQuery row = index.rough_keys().round(head, query.data(), 1.0F, bytes.data());
            rough_plain.logits(index.rough_keys().tiles(head), 0, tiles, { &row, 1 }, logits.data(), 0);
            for (int64_t cell = 0; cell < visible; cell++) {
                if (cover->has(cell)) {
                    cache.key_rows().read(cell, head, 0, s.key_size, key.data());
                    double product = 0.0;
                    for (size_t i = 0; i < query.size(); i++) {
                        product += static_cast<double>(query[i]) * key[i];
                    }
                    const double bound = static_cast<double>(row.error) * index.rough_keys().tiles(head).steps[cell];
                    if (!(std::fabs(product - logits[static_cast<size_t>(cell)]) <= bound + 1e-4)) {
                        return "a rough key is of another key";
                    }
                }
            }
        }
        return {};
    }

    std::string wrong_size() const {
        const auto bound = std::max<int64_t>(16, cache.shape().cells / options.cells_of_cluster);
        if (cover->clusters() > bound || index.covers() > options.most_covers) {
            return "more clusters or covers than there may be";
        }
        return {};
    }

    Random & random;
    IndexOptions options;
    test::MadeCache cache;
    std::vector<Cell> cells;
    LayerIndex index;
    int64_t visible = 0;
    int64_t order = 0;
    std::vector<uint8_t> by_all;
    std::vector<uint8_t> by_some;
    const CellCover * cover = nullptr;
    std::map<const CellCover *, std::vector<uint8_t>> before;
};

TEST(LayerIndex, AfterAnyHistoryItKnowsTheCache) {
    int64_t covered = 0;
    int64_t most_covers = 0;
    for (int i = 0; i < test::cases(120); i++) {
        Random random(static_cast<unsigned>(i));
        History history(random);
        for (int step = 0; step < 60; step++) {
            history.step();
            if (history.visible_cells() > 0 && coin(random, 0.6)) {
                ASSERT_EQ(history.ask(), "") << "case " << i << " step " << step;
                covered = std::max(covered, history.latest().covered());
                most_covers = std::max(most_covers, history.layer().covers());
            }
        }
    }
    EXPECT_GT(covered, 200);
    EXPECT_EQ(most_covers, 5);
}

// What the test above would not notice, it could not promise either.
TEST(LayerIndex, AWriteThatNobodyToldShows) {
    int tried = 0;
    for (int i = 0; i < 60; i++) {
        Random random(static_cast<unsigned>(i));
        History history(random);
        for (int step = 0; step < 30; step++) {
            history.step();
        }
        if (history.ask().empty() && history.latest().covered() > 0) {
            history.forget_to_tell();
            EXPECT_NE(history.check(), "") << "case " << i;
            tried++;
        }
    }
    EXPECT_GT(tried, 20);
}

// To a factor of two: vectors that grow have room to spare.
TEST(LayerIndex, BytesAreWhatItTakes) {
    Random random(4);
    test::CacheShape shape;
    shape.cells = 4000;
    shape.kv_heads = 2;
    shape.key_size = 64;
    shape.value_size = 64;
    test::MadeCache cache(shape, random);
    for (int64_t cell = 0; cell < shape.cells; cell++) {
        cache.write(0, cell, random);
    }
    const int64_t before = test::bytes_in_use();
    LayerIndex index(cache.cells(0), { 100, 50, 32, 3 });
    for (int turn = 0; turn < 5; turn++) {
        std::vector<uint8_t> seen(static_cast<size_t>(shape.cells), 0);
        for (size_t cell = static_cast<size_t>(turn); cell < seen.size(); cell += 5) {
            seen[cell] = 1;
        }
        index.cover_for({ seen, seen }, cache.cells(0));
        const int64_t taken = test::bytes_in_use() - before - static_cast<int64_t>(seen.capacity());
        EXPECT_LE(taken, 2 * index.bytes()) << "turn " << turn;
        EXPECT_GE(taken, index.bytes()) << "turn " << turn;
    }
    EXPECT_EQ(index.covers(), 3);
    index.all_change();
    EXPECT_EQ(index.covers(), 0);
    const int64_t kept = shape.cells * ((shape.kv_heads * (shape.key_size / 2 + 4)) + 6);
    EXPECT_LT(index.bytes(), kept * 3 / 2);
}

TEST(LayerIndex, SequencesHaveCoversOfTheirOwn) {
    Random random(3);
    test::CacheShape shape;
    shape.cells = 600;
    test::MadeCache cache(shape, random);
    LayerIndex index(cache.cells(0), { 10, 5, 8, 8 });
    std::vector<std::vector<uint8_t>> seen(3, std::vector<uint8_t>(600, 0));
    for (int64_t cell = 0; cell < 600; cell++) {
        cache.write(0, cell, random);
        seen[static_cast<size_t>(cell % 3)][static_cast<size_t>(cell)] = 1;
    }
    for (int turn = 0; turn < 2; turn++) {
        for (const auto & of : seen) {
            const CellCover & cover = index.cover_for({ of, of }, cache.cells(0));
            EXPECT_EQ(cover.covered(), 190);
        }
        EXPECT_EQ(index.covers(), 3);
    }
}

TEST(LayerIndex, AWindowStaysWhereTheLatestAreTakenBack) {
    Random random(5);
    test::CacheShape shape;
    shape.cells = 400;
    test::MadeCache cache(shape, random);
    LayerIndex index(cache.cells(0), { 40, 10, 8, 8 });
    std::vector<uint8_t> seen(400, 1);
    for (int64_t cell = 0; cell < 400; cell++) {
        cache.write(0, cell, random);
        index.cells_change({ &cell, 1 });
    }
    EXPECT_EQ(index.cover_for({ seen, seen }, cache.cells(0)).covered(), 360);
    std::fill(seen.begin() + 365, seen.end(), uint8_t{ 0 });
    const CellCover & cover = index.cover_for({ seen, seen }, cache.cells(0));
    EXPECT_EQ(cover.covered(), 325);
    for (int64_t cell = 0; cell < 365; cell++) {
        EXPECT_EQ(cover.has(cell), cell < 325) << cell;
    }
}

} // namespace
} // namespace cascade::cover
