#include "cover_input.h"

#include "cover/plain.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cascade::fuzz {

namespace {

using Limits = std::numeric_limits<float>;

void fill_alike(float * row, int64_t size, const float * model, float scale, float noise, ByteReader & reader) {
    for (int64_t k = 0; k < size; k++) {
        row[k] = scale * (model[k] + (noise > 0.0F ? noise * reader.noise() : 0.0F));
    }
}

void fill_fresh(float * row, int64_t size, ByteReader & reader) {
    switch (reader.below(6)) {
    case 0: // whatever the bytes say: NaN, infinities, denormals
        std::generate_n(row, size, [&] { return reader.any_float(); });
        break;
    case 1:
        std::generate_n(row, size, [&] { return reader.small_float(); });
        break;
    case 2:
        std::fill_n(row, size, 0.0F);
        row[reader.below(size)] = 1.0F;
        break;
    case 3: // in a plane, where chains of neighbours are common
        std::fill_n(row, size, 0.0F);
        row[0] = reader.small_float();
        row[size - 1] = reader.small_float();
        break;
    default:
        reader.reseed(reader.byte());
        std::generate_n(row, size, [&] { return reader.noise(); });
    }
}

void fill_constant(float * row, int64_t size, ByteReader & reader) {
    constexpr float values[] = {
        0.0F, -0.0F, 1.0F, Limits::max(), -Limits::max(), Limits::denorm_min(), Limits::min()
    };
    std::fill_n(row, size, values[reader.below(std::size(values))]);
}

void spoil_value(float * row, int64_t size, ByteReader & reader) {
    constexpr float values[] = { Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity(), Limits::max(),
                                 Limits::denorm_min() };
    const int64_t at = reader.below(size);
    row[at] = values[reader.below(std::size(values))];
}

void fill_row(Rows & rows, int64_t token, ByteReader & reader) {
    float * row = rows.row(token);
    const int64_t kind = token == 0 ? 0 : reader.below(10);
    if (kind < 2) {
        fill_fresh(row, rows.size, reader);
    } else if (kind == 2) {
        fill_constant(row, rows.size, reader);
    } else {
        constexpr float noises[] = { 0.0F, 0.0F, 0.02F, 0.1F, 0.3F, 0.7F, 2.0F };
        constexpr float scales[] = { 1.0F, 1.0F, -1.0F, 3.0F, -0.37F, 1e30F, -1e-30F, 1e-42F };
        const float * model = rows.row(kind < 6 ? token - 1 : reader.below(token)); // a chain, or a cluster
        const float noise = noises[reader.below(std::size(noises))];
        fill_alike(row, rows.size, model, scales[reader.below(std::size(scales))], noise, reader);
        if (kind == 9) {
            spoil_value(row, rows.size, reader);
        }
    }
}

} // namespace

Rows read_rows(ByteReader & reader) {
    Rows rows;
    switch (reader.below(16)) {
    case 0:
        rows.tokens = reader.between(150, 420);
        rows.size = reader.between(1, 5);
        break;
    case 1:
        rows.tokens = reader.between(0, 12);
        rows.size = reader.between(500, 1100);
        break;
    case 2:
    case 3:
    case 4:
        rows.tokens = reader.between(0, 80);
        rows.size = reader.between(1, 70);
        break;
    default:
        rows.tokens = reader.between(0, 24);
        rows.size = reader.between(1, 20);
    }
    rows.stride = rows.size + reader.below(4);
    rows.data.resize(static_cast<size_t>(rows.tokens == 0 ? 0 : ((rows.tokens - 1) * rows.stride) + rows.size));
    for (int64_t token = 0; token < rows.tokens; token++) {
        fill_row(rows, token, reader);
    }
    return rows;
}

Rows next_layer(const Rows & rows, ByteReader & reader) {
    constexpr float changes[] = { 0.0F, 0.02F, 0.1F, 0.3F, 0.3F, 1.0F, 5.0F };
    const float change = changes[reader.below(std::size(changes))];
    Rows next = rows;
    for (float & value : next.data) {
        value += change * value * reader.noise();
    }
    for (int64_t left = next.tokens > 0 ? reader.below(4) : 0; left > 0; left--) {
        fill_row(next, reader.below(next.tokens), reader);
    }
    return next;
}

CoverOptions read_options(ByteReader & reader, const Rows & rows) {
    CoverOptions options;
    options.sign = reader.below(2) == 0 ? Sign::ignored : Sign::kept;
    constexpr double usual[] = { 0.001, 0.1, 0.3, 0.6, 0.7071067811865476, 0.99, 0.9999999 };
    constexpr auto usual_count = static_cast<int64_t>(std::size(usual));
    const int64_t which = reader.below(usual_count + 6);
    if (which < usual_count) {
        options.tau = usual[which];
    } else if (which == usual_count) {
        options.tau = (1.0 + static_cast<double>(reader.byte())) / 257.0;
    } else if (rows.tokens > 1) {
        const TokenRows pair = { rows.view().row(reader.below(rows.tokens - 1)), 2, rows.size, rows.stride };
        const double on_threshold = std::sqrt(1.0 - static_cast<double>(plain::Gram(pair, options.sign)(1, 0)));
        options.tau = on_threshold > 0.001 && on_threshold < 0.9999999 ? on_threshold : 0.3;
    }
    return options;
}

std::vector<int32_t> read_set(ByteReader & reader, int64_t tokens) {
    const int64_t kind = reader.below(4);
    const int64_t count = kind == 0   ? 0
                          : kind == 1 ? std::min<int64_t>(tokens, 1)
                          : kind == 2 ? tokens
                                      : reader.below(tokens + 1);
    return random_representatives(tokens, count, reader.byte());
}

Cover read_below(ByteReader & reader, const Rows & rows, const CoverOptions & options, Team & team) {
    const TokenRows view = rows.view();
    switch (reader.below(5)) {
    case 0:
        return threshold_cover(view, options, team);
    case 1:
        return assign(view, read_set(reader, rows.tokens), Reach::earlier, options, team);
    case 2:
        return assign(view, read_set(reader, rows.tokens), Reach::anywhere, options, team);
    case 3: { // links that lead anywhere, and nowhere
        Cover cover = leader_cover(view, options, team);
        for (int64_t left = rows.tokens > 0 ? reader.below(8) : 0; left > 0; left--) {
            const int64_t speaker = reader.below(rows.tokens + 2) - 2;
            cover.assigned[static_cast<size_t>(reader.below(rows.tokens))] =
                speaker == -2 ? std::numeric_limits<int32_t>::min() : static_cast<int32_t>(speaker);
        }
        return cover;
    }
    default:
        return leader_cover(view, options, team);
    }
}

bool spoil(Cover & cover, ByteReader & reader) {
    const auto tokens = static_cast<int32_t>(cover.tokens());
    auto & set = cover.representatives;
    switch (reader.below(9)) {
    case 0:
        set.push_back(tokens);
        return true;
    case 1:
        set.insert(set.begin(), -1);
        return true;
    case 2:
        set.push_back(std::numeric_limits<int32_t>::max());
        return true;
    case 3:
        cover.similarity.push_back(0.0F);
        return true;
    case 4:
        cover.assigned.push_back(0);
        cover.similarity.push_back(0.0F);
        return true;
    case 5:
        if (tokens > 0) {
            cover.assigned[static_cast<size_t>(reader.below(tokens))] = tokens;
        }
        return tokens > 0;
    case 6:
        if (tokens > 0) {
            cover.assigned.pop_back();
            cover.similarity.pop_back();
        }
        return tokens > 0;
    case 7:
        if (!set.empty()) {
            set.push_back(set.back());
        }
        return !set.empty();
    default:
        if (set.size() > 1) {
            std::swap(set.front(), set.back());
        }
        return set.size() > 1;
    }
}

} // namespace cascade::fuzz
