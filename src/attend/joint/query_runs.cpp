#include "attend/joint/query_runs.h"

#include <algorithm>
#include <cstring>

namespace cascade::attend {

namespace {

constexpr int64_t neighbours_differ = 16; // tokens

template <typename Word>
struct MaskWords;
template <>
struct MaskWords<uint16_t> {
    static constexpr uint16_t hidden = 0xFC00;
    static constexpr uint16_t magnitude = 0x7FFF;
};
template <>
struct MaskWords<uint32_t> {
    static constexpr uint32_t hidden = 0xFF800000;
    static constexpr uint32_t magnitude = 0x7FFFFFFF;
};

const char * mask_row(const Attention & a, int64_t stream, int64_t query) {
    return a.mask.start(query, 0, stream % a.mask_streams);
}

// Tokens that one of two queries sees and the other doesn't.
template <typename Word>
int64_t difference(const Word * a, const Word * b, int64_t tokens) {
    int64_t count = 0;
    for (int64_t t = 0; t < tokens; t++) {
        count += (a[t] == MaskWords<Word>::hidden) != (b[t] == MaskWords<Word>::hidden) ? 1 : 0;
    }
    return count;
}

template <typename Word>
void add_query(const Word * row, int64_t tokens, uint8_t * by_all, uint8_t * by_some) {
    for (int64_t t = 0; t < tokens; t++) {
        by_all[t] &= static_cast<uint8_t>((row[t] & MaskWords<Word>::magnitude) == 0 ? 1 : 0);
        by_some[t] |= static_cast<uint8_t>(row[t] != MaskWords<Word>::hidden ? 1 : 0);
    }
}

class Finder {
  public:
    Finder(const Attention & an_attention, std::vector<QueryRun> & to) : a(an_attention), runs(to) {}

    template <typename Word>
    void find(int64_t stream) {
        const Word * before = nullptr;
        for (int64_t query = 0; query < a.queries; query++) {
            const auto * row = reinterpret_cast<const Word *>(mask_row(a, stream, query));
            if (before == nullptr || difference(before, row, a.tokens) > neighbours_differ) {
                start(stream, query);
            }
            QueryRun & run = runs[used - 1];
            add_query(row, a.tokens, run.by_all.data(), run.by_some.data());
            run.count++;
            before = row;
        }
    }

    void see_everything(int64_t stream) {
        start(stream, 0);
        QueryRun & run = runs[used - 1];
        run.count = a.queries;
        std::fill(run.by_some.begin(), run.by_some.end(), uint8_t{ 1 });
    }

    void finish() { runs.resize(used); }

  private:
    void start(int64_t stream, int64_t query) {
        if (used == runs.size()) {
            runs.emplace_back();
        }
        QueryRun & run = runs[used++];
        run.stream = stream;
        run.first = query;
        run.count = 0;
        run.by_all.assign(static_cast<size_t>(a.tokens), 1);
        run.by_some.assign(static_cast<size_t>(a.tokens), 0);
    }

    const Attention & a;
    std::vector<QueryRun> & runs;
    size_t used = 0;
};

} // namespace

bool has_plain_mask(const Attention & a) {
    const bool readable = a.mask.format == Format::f16 || a.mask.format == Format::f32;
    return a.mask.base == nullptr || (readable && a.mask.value_stride == 0 && a.mask_heads == 1);
}

void find_query_runs(const Attention & a, std::vector<QueryRun> & runs) {
    Finder finder(a, runs);
    for (int64_t stream = 0; stream < a.streams; stream++) {
        if (a.mask.base == nullptr) {
            finder.see_everything(stream);
        } else if (a.mask.format == Format::f16) {
            finder.find<uint16_t>(stream);
        } else {
            finder.find<uint32_t>(stream);
        }
    }
    finder.finish();
}

float mask_value(const Attention & a, int64_t stream, int64_t query, int64_t token) {
    if (a.mask.base == nullptr) {
        return 0.0F;
    }
    const size_t width = a.mask.format == Format::f16 ? sizeof(uint16_t) : sizeof(float);
    float value = 0.0F;
    a.mask.to_float(mask_row(a, stream, query) + (static_cast<size_t>(token) * width), &value, 1);
    return value;
}

} // namespace cascade::attend
