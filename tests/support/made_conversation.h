// Conversations in one cache, turn by turn as an engine has them: sequences that share cells or lose some, cells used
// again, masks that say who sees what, and an index for each stream that is told of every write.
#pragma once

#include "cover/index/layer_index.h"
#include "support/made_cache.h"

#include <map>
#include <numeric>

namespace cascade::test {

struct ConversationShape {
    CacheShape cache;
    int64_t group = 1;
    int64_t sequences = 1;
    Format mask_format = Format::f16;
    bool masked = true;       // without: one sequence, and all is seen by all
    bool interleaved = false; // sequences take turns from query to query
    double biased = 0.0;      // share of visible entries that add something
    double unseeing = 0.0;    // share of queries that see nothing
    float sharpness = 1.0F;
    bool sinks = false;
    cover::IndexOptions index;
};

inline ConversationShape some_conversation(Random & random) {
    ConversationShape s;
    s.cache.kv_heads = between(random, 1, 4);
    s.group = between(random, 1, 4);
    s.cache.key_size = 8 * one_of<int64_t>(random, { 1, 2, 3, 5, 8, 10, 12, 16 });
    s.cache.value_size = coin(random, 0.7) ? s.cache.key_size : between(random, 1, 100);
    s.cache.streams = coin(random, 0.3) ? between(random, 2, 3) : 1;
    s.cache.cells = between(random, 90, 420);
    s.cache.format = one_of(random, { Format::f32, Format::f16, Format::bf16, Format::other });
    s.cache.heads_inside = coin(random, 0.5);
    s.masked = !coin(random, 0.1);
    s.sequences = s.masked ? between(random, 1, 3) : 1;
    s.interleaved = coin(random, 0.2);
    s.mask_format = coin(random, 0.5) ? Format::f16 : Format::f32;
    s.biased = coin(random, 0.2) ? 0.01 : 0.0;
    s.unseeing = coin(random, 0.1) ? 0.2 : 0.0;
    s.sharpness = one_of(random, { 0.5F, 1.5F, 4.0F });
    s.sinks = coin(random, 0.2);
    s.index.window = between(random, 0, 40);
    s.index.slack = between(random, 0, 20);
    s.index.cells_of_cluster = between(random, 2, 12);
    s.index.most_covers = between(random, 1, 8);
    return s;
}

class Conversation {
  public:
    Conversation(const ConversationShape & shape, Random & a_random)
        : s(shape), random(a_random), cache(s.cache, random),
          cells(static_cast<size_t>(s.cache.streams), std::vector<Cell>(static_cast<size_t>(s.cache.cells))),
          next(static_cast<size_t>(s.cache.streams), std::vector<int64_t>(static_cast<size_t>(s.sequences), 0)) {
        for (int64_t stream = 0; stream < s.cache.streams; stream++) {
            layers.emplace_back(cache.cells(stream), s.index);
        }
        for (int64_t head = 0; head < s.group * s.cache.kv_heads; head++) {
            sink_values.push_back(static_cast<float>(between(random, -20, 20)) / 10.0F);
        }
    }

    // Tokens that nobody asks about yet, in a few writes.
    void read_prompt(int64_t tokens) {
        for (int64_t left = tokens; left > 0;) {
            const int64_t some = std::min(left, between(random, 1, 64));
            for (int64_t stream = 0; stream < s.cache.streams; stream++) {
                write(stream, std::vector<int64_t>(static_cast<size_t>(some), between(random, 0, s.sequences - 1)));
            }
            left -= some;
        }
    }

    void lose_some() {
        for (auto & of_stream : cells) {
            const int64_t first = between(random, 0, s.cache.cells - 1);
            const int64_t last = std::min(s.cache.cells, first + between(random, 1, 30));
            for (int64_t cell = first; cell < last; cell++) {
                of_stream[static_cast<size_t>(cell)].positions.clear();
            }
        }
    }

    // A sequence goes on where another one is.
    void share(int64_t from, int64_t to) {
        for (size_t stream = 0; stream < cells.size(); stream++) {
            for (Cell & cell : cells[stream]) {
                cell.positions.erase(to);
                const auto found = cell.positions.find(from);
                if (found != cell.positions.end()) {
                    cell.positions[to] = found->second;
                }
            }
            next[stream][static_cast<size_t>(to)] = next[stream][static_cast<size_t>(from)];
        }
    }

    void change_silently() {
        for (int64_t cell = 0; cell < s.cache.cells; cell++) {
            cache.write(0, cell, random);
        }
    }

    // Some of a sequence's tokens get values that aren't finite, and the index is told.
    void spoil_sequence(int64_t sequence, double share) {
        for (int64_t cell = 0; cell < s.cache.cells; cell++) {
            if (cells[0][static_cast<size_t>(cell)].positions.count(sequence) > 0 && coin(random, share)) {
                layers[0].cells_change({ &cell, 1 });
                cache.spoil(0, cell, random);
            }
        }
    }

    // New tokens are written, each asks. The arrays of the last turn's attention are used again.
    Attention & turn(int64_t queries) {
        std::vector<std::vector<int64_t>> asking;
        for (int64_t stream = 0; stream < s.cache.streams; stream++) {
            asking.push_back(who_asks(queries));
        }
        return turn(asking);
    }

    Attention & turn_of(int64_t sequence, int64_t queries) {
        return turn(std::vector<std::vector<int64_t>>(static_cast<size_t>(s.cache.streams),
                                                      std::vector<int64_t>(static_cast<size_t>(queries), sequence)));
    }

    // By sequence, for each stream.
    Attention & turn(const std::vector<std::vector<int64_t>> & asking) {
        for (int64_t stream = 0; stream < s.cache.streams; stream++) {
            write(stream, asking[static_cast<size_t>(stream)]);
        }
        const auto queries = static_cast<int64_t>(asking[0].size());
        Attention & a = made;
        a = {};
        a.queries = queries, a.tokens = tokens(), a.kv_heads = s.cache.kv_heads, a.heads = s.group * a.kv_heads;
        a.streams = s.cache.streams, a.key_size = s.cache.key_size, a.value_size = s.cache.value_size;
        a.key = cache.key_rows();
        a.value = cache.value_rows();
        a.pre_scale = 1.0F / std::sqrt(static_cast<float>(a.key_size));
        a.sinks = s.sinks ? sink_values.data() : nullptr;
        make_queries(a);
        make_mask(a, asking);
        out.assign(static_cast<size_t>(a.streams * a.queries * a.heads * a.value_size), 99.0F);
        a.out = reinterpret_cast<char *>(out.data());
        a.out_head_stride = static_cast<size_t>(a.value_size) * sizeof(float);
        a.out_query_stride = static_cast<size_t>(a.heads) * a.out_head_stride;
        a.out_stream_stride = static_cast<size_t>(a.queries) * a.out_query_stride;
        return a;
    }

    std::vector<cover::LayerIndex *> indexes() {
        std::vector<cover::LayerIndex *> list;
        for (cover::LayerIndex & layer : layers) {
            list.push_back(&layer);
        }
        return list;
    }

    const ConversationShape & shape() const { return s; }
    std::vector<cover::LayerIndex> & layer_of_streams() { return layers; }
    std::vector<float> & output() { return out; }
    MadeCache & memory() { return cache; }
    int64_t sequence_length(int64_t sequence) const { return next[0][static_cast<size_t>(sequence)]; }

  private:
    struct Cell {
        std::map<int64_t, int64_t> positions; // by sequence that sees it
    };

    std::vector<int64_t> who_asks(int64_t queries) {
        std::vector<int64_t> who(static_cast<size_t>(queries));
        std::generate(who.begin(), who.end(), [&] { return between(random, 0, s.sequences - 1); });
        if (!s.interleaved) {
            std::sort(who.begin(), who.end());
        }
        return who;
    }

    // One token for each; where all cells are taken, the first ones are used again.
    void write(int64_t stream, const std::vector<int64_t> & sequences) {
        auto & of_stream = cells[static_cast<size_t>(stream)];
        std::vector<int64_t> changed;
        int64_t cell = 0;
        for (const int64_t sequence : sequences) {
            while (cell < s.cache.cells && !of_stream[static_cast<size_t>(cell)].positions.empty()) {
                cell++;
            }
            const int64_t taken = cell < s.cache.cells ? cell : between(random, 0, s.cache.cells - 1);
            int64_t & position = next[static_cast<size_t>(stream)][static_cast<size_t>(sequence)];
            of_stream[static_cast<size_t>(taken)].positions = { { sequence, position++ } };
            changed.push_back(taken);
        }
        layers[static_cast<size_t>(stream)].cells_change(changed);
        for (const int64_t written : changed) {
            cache.write(stream, written, random);
        }
    }

    // That the engine shows: up to the last one in use, and a bit more where a mask can hide it.
    int64_t tokens() const {
        int64_t last = 1;
        for (const auto & of_stream : cells) {
            for (int64_t cell = 0; cell < s.cache.cells; cell++) {
                last = !of_stream[static_cast<size_t>(cell)].positions.empty() ? std::max(last, cell + 1) : last;
            }
        }
        return s.masked ? std::min(s.cache.cells, attend::round_up(last, 32)) : last;
    }

    void make_queries(Attention & a) {
        const int64_t n = a.streams * a.heads * a.queries * a.key_size;
        query = Stored(Format::f32, n);
        std::normal_distribution<float> normal(0.0F, s.sharpness);
        for (int64_t i = 0; i < n; i++) {
            query.set(i, normal(random));
        }
        a.query = query.rows(a.key_size, a.queries, a.heads);
    }

    void make_mask(Attention & a, const std::vector<std::vector<int64_t>> & asking) {
        if (!s.masked) {
            return;
        }
        mask = Stored(s.mask_format, a.streams * a.queries * a.tokens);
        int64_t at = 0;
        for (int64_t stream = 0; stream < a.streams; stream++) {
            const auto & who = asking[static_cast<size_t>(stream)];
            auto position = next[static_cast<size_t>(stream)];
            for (const int64_t sequence : who) {
                position[static_cast<size_t>(sequence)]--;
            }
            for (const int64_t sequence : who) {
                const int64_t own = position[static_cast<size_t>(sequence)]++;
                const bool sees = !coin(random, s.unseeing);
                for (int64_t token = 0; token < a.tokens; token++) {
                    const Cell & cell = cells[static_cast<size_t>(stream)][static_cast<size_t>(token)];
                    const auto found = cell.positions.find(sequence);
                    const bool visible = sees && found != cell.positions.end() && found->second <= own;
                    const float bias = s.biased > 0.0 && coin(random, s.biased) ? -0.5F : 0.0F;
                    mask.set(at++, visible ? bias : hidden);
                }
            }
        }
        a.mask = mask.rows(a.tokens, a.queries, 1);
        a.mask_streams = a.streams;
    }

    ConversationShape s;
    Random & random;
    MadeCache cache;
    std::vector<std::vector<Cell>> cells;   // by stream
    std::vector<std::vector<int64_t>> next; // by stream and sequence: its next position
    std::vector<cover::LayerIndex> layers;
    std::vector<float> sink_values;
    Attention made;
    Stored query;
    Stored mask;
    std::vector<float> out;
};

} // namespace cascade::test
