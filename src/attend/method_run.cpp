#include "attend/method_run.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cascade {

namespace {

constexpr int64_t kept_queries = 64; // that a later block can ask about the past
constexpr double cache_bits = 16.0;

// Rows of one head as floats, one after the other.
std::vector<float> read_rows(const Rows & rows, int64_t first, int64_t count, int64_t head, int64_t size) {
    std::vector<float> values(static_cast<size_t>(count * size));
    for (int64_t i = 0; i < count; i++) {
        rows.read(first + i, head, 0, size, values.data() + (i * size));
    }
    return values;
}

uint64_t mixed(uint64_t seed, uint64_t value) {
    const uint64_t sum = (seed ^ value) * 0x9E3779B97F4A7C15U;
    return sum ^ (sum >> 32U);
}

} // namespace

bool is_plainly_causal(const Attention & a, int64_t first) {
    if (a.mask.base == nullptr || a.max_bias != 0.0F || a.sinks != nullptr || a.streams != 1 || a.mask_heads != 1 ||
        first + a.queries > a.tokens) {
        return false;
    }
    std::vector<float> row(static_cast<size_t>(a.tokens));
    for (int64_t query = 0; query < a.queries; query++) {
        a.mask.read(query, 0, 0, a.tokens, row.data());
        const auto own = row.begin() + first + query + 1;
        const auto hidden = [](float value) { return value == -std::numeric_limits<float>::infinity(); };
        if (!std::all_of(row.begin(), own, [](float value) { return value == 0.0F; }) ||
            !std::all_of(own, row.end(), hidden)) {
            return false;
        }
    }
    return true;
}

MethodRun::MethodRun(MethodSpec a_method, int layers, int64_t window, uint64_t seed)
    : method(std::move(a_method)), exact_window(method.window >= 0 ? method.window : window), first_seed(seed),
      memories(static_cast<size_t>(layers)), figures(static_cast<size_t>(layers)) {}

void MethodRun::add_rows(int layer, const TokenRows & rows) {
    Memory & memory = memories[static_cast<size_t>(layer)];
    memory.row_size = rows.size;
    for (int64_t token = 0; token < rows.tokens; token++) {
        memory.rows.insert(memory.rows.end(), rows.row(token), rows.row(token) + rows.size);
    }
}

TokenRows MethodRun::rows_of(const Memory & memory, int64_t tokens) const {
    return { memory.rows.data(), tokens, memory.row_size, memory.row_size };
}

bool MethodRun::replaces(int layer, int64_t first, const Attention & attention) {
    if (method.leaves_alone()) {
        return false;
    }
    Memory & memory = memories[static_cast<size_t>(layer)];
    LayerError & figure = figures[static_cast<size_t>(layer)];
    if (memory.checked != first) {
        memory.checked = first;
        memory.refused = memory.refused || !is_plainly_causal(attention, first);
        figure.left_alone = memory.refused; // a sliding window may show itself only after some blocks
    }
    return !memory.refused && (method.select == nullptr || first > exact_window);
}

void MethodRun::attend(int layer, int64_t first, const Attention & attention, bool dense, Team & team) {
    Memory & memory = memories[static_cast<size_t>(layer)];
    if (replaces(layer, first, attention)) {
        std::vector<float> out(static_cast<size_t>(attention.queries * attention.heads * attention.value_size));
        if (method.select == nullptr) {
            attend_on_representatives(layer, first, attention, team, out);
        } else {
            attend_blocks(layer, first, attention, team, out);
        }
        if (dense) {
            measure(layer, attention, out);
        }
        write(attention, out);
    }
    if (method.select != nullptr && !memory.refused && !method.leaves_alone()) {
        keep_queries(memory, attention);
    }
}

void MethodRun::attend_on_representatives(int layer, int64_t first, const Attention & attention, Team & team,
                                          std::vector<float> & out) {
    Memory & memory = memories[static_cast<size_t>(layer)];
    const TokenRows rows = rows_of(memory, first + attention.queries);
    const CoverOptions options = { method.tau, Sign::ignored };
    Cover cover = threshold_cover(rows, options, team);
    if (method.random_set) {
        cover.representatives =
            random_representatives(rows.tokens, cover.size(), mixed(first_seed, static_cast<uint64_t>(layer)));
    }
    if (method.name != "copy") {
        cover = assign(rows, cover.representatives, Reach::earlier, options, team);
    }
    sums.past += static_cast<double>(rows.tokens);
    sums.read += static_cast<double>(cover.size());
    if (method.name == "representatives") {
        attend_representatives(attention, first, cover, exact_window, method.count, out, team);
    } else {
        attend_copy(attention, first, cover, memory.outputs, team);
        std::copy(memory.outputs.end() - static_cast<std::ptrdiff_t>(out.size()), memory.outputs.end(), out.begin());
    }
}

void MethodRun::attend_blocks(int layer, int64_t first, const Attention & attention, Team & team,
                              std::vector<float> & out) {
    Memory & memory = memories[static_cast<size_t>(layer)];
    Block block;
    block.queries = attention.queries;
    block.group = attention.heads / attention.kv_heads;
    block.past = std::max<int64_t>(0, first - exact_window);
    block.tokens = first + attention.queries;
    block.key_size = attention.key_size;
    block.value_size = attention.value_size;
    block.logit = { attention.pre_scale, attention.soft_cap, attention.post_scale };
    Cover cover;
    if (method.wants_cover && block.past > 0) {
        const int64_t wanted = tokens_in_budget(block, method.cover_share());
        cover = sized_cover(rows_of(memory, block.past), wanted, Sign::kept, memory.tau, team);
        block.cover = &cover;
    }
    for (int64_t kv_head = 0; kv_head < attention.kv_heads; kv_head++) {
        block.seed = mixed(mixed(first_seed, static_cast<uint64_t>(layer)),
                           (static_cast<uint64_t>(first) << 16U) + static_cast<uint64_t>(kv_head));
        if (!memory.queries.empty()) {
            block.earlier_queries = static_cast<int64_t>(memory.queries.size()) / (attention.heads * block.key_size);
            block.earlier_query =
                memory.queries.data() + (kv_head * block.group * block.earlier_queries * block.key_size);
        }
        attend_head(block, kv_head, attention, team, out);
    }
}

// Writes the group's heads of out: queries x heads x value_size.
void MethodRun::attend_head(Block & block, int64_t kv_head, const Attention & attention, Team & team,
                            std::vector<float> & out) {
    std::vector<float> queries;
    for (int64_t i = 0; i < block.group; i++) {
        const auto rows = read_rows(attention.query, 0, block.queries, (kv_head * block.group) + i, block.key_size);
        queries.insert(queries.end(), rows.begin(), rows.end());
    }
    const auto keys = read_rows(attention.key, 0, block.tokens, kv_head, block.key_size);
    const auto values = read_rows(attention.value, 0, block.tokens, kv_head, block.value_size);
    block.query = queries.data();
    block.key = keys.data();
    block.value = values.data();
    const Selection selection = method.choose(block, team);
    std::vector<float> attended(static_cast<size_t>(block.group * block.queries * block.value_size));
    attend_selection(block, selection, attended.data(), team);
    for (int64_t i = 0; i < block.group; i++) {
        for (int64_t query = 0; query < block.queries; query++) {
            const int64_t head = (kv_head * block.group) + i;
            std::copy_n(attended.data() + (((i * block.queries) + query) * block.value_size), block.value_size,
                        out.data() + (((query * attention.heads) + head) * block.value_size));
        }
    }
    const auto past = static_cast<double>(block.past);
    const double row_bytes = static_cast<double>(block.key_size + block.value_size) * cache_bits / 8.0;
    sums.past += past;
    sums.read += static_cast<double>(selection.read());
    sums.bytes += (static_cast<double>(selection.read()) * row_bytes) + (past * selection.index_bits / 8.0);
    sums.dense_bytes += past * row_bytes;
}

void MethodRun::keep_queries(Memory & memory, const Attention & attention) const {
    const int64_t count = std::min(kept_queries, attention.queries);
    memory.queries.clear();
    for (int64_t head = 0; head < attention.heads; head++) {
        const auto rows = read_rows(attention.query, attention.queries - count, count, head, attention.key_size);
        memory.queries.insert(memory.queries.end(), rows.begin(), rows.end());
    }
}

void MethodRun::measure(int layer, const Attention & attention, const std::vector<float> & out) {
    LayerError & figure = figures[static_cast<size_t>(layer)];
    const float * own = out.data();
    for (int64_t query = 0; query < attention.queries; query++) {
        for (int64_t head = 0; head < attention.heads; head++, own += attention.value_size) {
            const float * dense = attention.output(query, head, 0);
            for (int64_t i = 0; i < attention.value_size; i++) {
                const double difference = static_cast<double>(own[i]) - dense[i];
                figure.difference += difference * difference;
                figure.norm += static_cast<double>(dense[i]) * dense[i];
            }
        }
    }
}

void MethodRun::write(const Attention & attention, const std::vector<float> & out) const {
    const float * own = out.data();
    for (int64_t query = 0; query < attention.queries; query++) {
        for (int64_t head = 0; head < attention.heads; head++, own += attention.value_size) {
            std::copy_n(own, attention.value_size, attention.output(query, head, 0));
        }
    }
}

} // namespace cascade
