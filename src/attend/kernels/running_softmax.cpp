#include "attend/kernels/running_softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cascade::attend {

namespace {

constexpr float nothing = -std::numeric_limits<float>::infinity();

} // namespace

float weight_below(float logit, float largest) { return logit == nothing ? 0.0F : std::exp2(logit - largest); }

void RunningSoftmax::start(int64_t rows, int64_t value_size) {
    value_width = round_up(value_size, row_padding);
    softmax.resize(static_cast<size_t>(rows));
    std::fill(softmax.begin(), softmax.end(), RowSoftmax{ nothing, 0.0F });
    const int64_t padded = round_up(rows, kernel().rows);
    std::fill_n(sums.need(padded * value_width), padded * value_width, 0.0F);
}

void RunningSoftmax::merge(const RunningSoftmax & other) {
    for (int64_t r = 0; r < rows(); r++) {
        const float largest = std::max(row(r).largest, other.row(r).largest);
        const float mine = weight_below(row(r).largest, largest);
        const float theirs = weight_below(other.row(r).largest, largest);
        row(r) = { largest, (mine * row(r).sum) + (theirs * other.row(r).sum) };
        float * sum = out(r);
        const float * added = other.out(r);
        for (int64_t i = 0; i < value_width; i++) {
            sum[i] = (mine * sum[i]) + (theirs * added[i]);
        }
    }
}

void RunningSoftmax::finish(const QueryRows & queries) const {
    const Attention & a = queries.attention();
    for (int64_t r = 0; r < rows(); r++) {
        const float sink = a.sinks != nullptr ? a.sinks[queries.head(r)] * log2_e : nothing;
        const float largest = std::max(row(r).largest, sink);
        const float weight = weight_below(row(r).largest, largest);
        const float total = (weight * row(r).sum) + weight_below(sink, largest);
        const float inverse = largest == nothing ? 0.0F : weight / total;
        float * written = a.output(queries.query(r), queries.head(r), queries.stream());
        std::transform(out(r), out(r) + a.value_size, written, [inverse](float sum) { return sum * inverse; });
    }
}

} // namespace cascade::attend
