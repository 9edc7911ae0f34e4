#include "attend/kernels/exact.h"

#include <algorithm>
#include <new>

namespace cascade::attend {

namespace {

constexpr int64_t floats_at_once = int64_t(4) << 20; // of converted columns, or those of one head where it has more
constexpr int64_t most_block_rows = 96;
constexpr int64_t blocks_for_each_part = 4;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Queries of a block: about most_block_rows rows, fewer where parts would be left without; of the sizes near that,
// the one that leaves the least of its packs empty.
int64_t queries_of_block(const Attention & a, int64_t units, int parts) {
    const int64_t group = a.heads / a.kv_heads;
    const int64_t pack = kernel().rows;
    const int64_t fair = ceil_div(a.queries * group * units, parts * blocks_for_each_part);
    const int64_t most = std::max<int64_t>(1, std::clamp(fair, pack, most_block_rows) / group);
    int64_t best = most;
    double best_use = 0.0;
    for (int64_t queries = most; queries > most / 2; queries--) {
        const int64_t rows = queries * group;
        const double use = static_cast<double>(rows) / static_cast<double>(round_up(rows, pack));
        if (use > best_use) {
            best = queries;
            best_use = use;
        }
    }
    return best;
}

} // namespace

class ExactRun {
  public:
    ExactRun(const Attention & attention, int this_part, int all_parts, ExactShared & all, ExactScratch & own)
        : a(attention), part(this_part), parts(all_parts), shared(all), scratch(own), units(a.streams * a.kv_heads),
          few(a.queries * (a.heads / a.kv_heads) <= most_few_rows) {}

    ExactWay run() {
        if (!prepared()) {
            return ExactWay::failed;
        }
        few ? attend_few() : attend_tiles();
        return few ? ExactWay::few : ExactWay::tiles;
    }

  private:
    int64_t kv_head(int64_t unit) const { return unit % a.kv_heads; }
    int64_t stream(int64_t unit) const { return unit / a.kv_heads; }
    void wait() { shared.barrier.wait(parts); }

    // All memory is there before anything is written, or nothing will be.
    bool prepared() {
        try {
            few ? prepare_few() : prepare_tiles();
        } catch (const std::bad_alloc &) {
            shared.failed = true;
        }
        wait();
        if (!shared.failed) {
            return true;
        }
        wait(); // all have seen it
        if (part == 0) {
            shared.failed = false;
        }
        wait();
        return false;
    }

    void prepare_tiles() {
        block_queries = queries_of_block(a, units, parts);
        units_at_once = std::clamp<int64_t>(floats_at_once / (a.tokens * (a.key_size + a.value_size) + 1), 1, units);
        if (part == 0) {
            shared.columns.resize(std::max(shared.columns.size(), static_cast<size_t>(units_at_once)));
            for (int64_t unit = 0; unit < units_at_once; unit++) {
                shared.columns[static_cast<size_t>(unit)].reset(a.tokens, a.key_size, a.value_size);
            }
            shared.next = 0;
        }
        const int64_t rows = block_queries * (a.heads / a.kv_heads);
        scratch.queries.resize(std::max<size_t>(scratch.queries.size(), 1));
        scratch.queries[0].fill(a, 0, 0, 0, std::min(block_queries, a.queries), QueryLayout::packs);
        scratch.state.start(rows, a.value_size);
        scratch.tile.need(a, rows);
        scratch.rows.need(Columns::scratch_floats(a));
    }

    void attend_tiles() {
        for (int64_t unit = 0; unit < units; unit += units_at_once) {
            const int64_t some = std::min(units_at_once, units - unit);
            fill_columns(unit, some);
            wait();
            attend_blocks(unit, some);
            if (unit + some < units) {
                wait(); // nobody reads the columns any more, and none has begun to count again
                if (part == 0) {
                    shared.next = 0;
                }
            }
        }
    }

    void fill_columns(int64_t first, int64_t some) {
        const int64_t each = round_up(ceil_div(a.tokens, parts), tile_columns);
        const int64_t from = std::min(each * part, a.tokens);
        const int64_t to = std::min(from + each, a.tokens);
        for (int64_t unit = 0; unit < some; unit++) {
            shared.columns[static_cast<size_t>(unit)].fill(from, a, kv_head(first + unit), stream(first + unit),
                                                           { nullptr, from, to - from }, scratch.rows);
        }
    }

    // Whoever is free takes the next block; where it is computed doesn't change it. Late queries, which see most,
    // come first.
    void attend_blocks(int64_t first, int64_t some) {
        const int64_t blocks = ceil_div(a.queries, block_queries);
        for (int64_t i = shared.next++; i < blocks * some; i = shared.next++) {
            const int64_t unit = i % some;
            const int64_t query = (blocks - 1 - (i / some)) * block_queries;
            QueryRows & queries = scratch.queries[0];
            queries.fill(a, kv_head(first + unit), stream(first + unit), query,
                         std::min(block_queries, a.queries - query), QueryLayout::packs);
            scratch.state.start(queries.rows(), a.value_size);
            attend_columns(queries, shared.columns[static_cast<size_t>(unit)], Masking::by_token, scratch.state,
                           scratch.tile);
            scratch.state.finish(queries);
        }
    }

    void prepare_few() {
        if (part == 0) {
            shared.part_sums.resize(std::max(shared.part_sums.size(), static_cast<size_t>(parts)));
            for (std::vector<RunningSoftmax> & sums : shared.part_sums) {
                sums.resize(std::max(sums.size(), static_cast<size_t>(units)));
                for (RunningSoftmax & sum : sums) {
                    sum.start(a.queries * (a.heads / a.kv_heads), a.value_size);
                }
            }
        }
        scratch.queries.resize(std::max(scratch.queries.size(), static_cast<size_t>(units)));
        for (int64_t unit = 0; unit < units; unit++) {
            scratch.queries[static_cast<size_t>(unit)].fill(a, kv_head(unit), stream(unit), 0, a.queries,
                                                            QueryLayout::rows);
        }
        scratch.few.need(a, a.queries * (a.heads / a.kv_heads));
    }

    // Tokens are split over the parts. The heads of a token stand side by side in the engine's cache, so all are read
    // before the next tokens.
    void attend_few() {
        const int64_t each = round_up(ceil_div(a.tokens, parts), tokens_of_few);
        const int64_t end = std::min(each * (part + 1), a.tokens);
        std::vector<RunningSoftmax> & sums = shared.part_sums[static_cast<size_t>(part)];
        for (int64_t s = 0; s < a.streams; s++) {
            for (int64_t token = each * part; token < end; token += tokens_of_few) {
                for (int64_t unit = s * a.kv_heads; unit < (s + 1) * a.kv_heads; unit++) {
                    attend_tokens(scratch.queries[static_cast<size_t>(unit)],
                                  { nullptr, token, std::min(tokens_of_few, end - token) }, Masking::by_token,
                                  sums[static_cast<size_t>(unit)], scratch.few);
                }
            }
        }
        wait();
        for (int64_t unit = part; unit < units; unit += parts) {
            RunningSoftmax & sum = shared.part_sums[0][static_cast<size_t>(unit)];
            for (int other = 1; other < parts; other++) {
                sum.merge(shared.part_sums[static_cast<size_t>(other)][static_cast<size_t>(unit)]);
            }
            sum.finish(scratch.queries[static_cast<size_t>(unit)]);
        }
    }

    const Attention & a;
    int part;
    int parts;
    ExactShared & shared;
    ExactScratch & scratch;
    int64_t units;
    bool few;
    int64_t block_queries = 0;
    int64_t units_at_once = 0;
};

ExactWay attend_exact(const Attention & attention, int part, int parts, ExactShared & shared, ExactScratch & scratch) {
    return ExactRun(attention, part, parts, shared, scratch).run();
}

} // namespace cascade::attend
