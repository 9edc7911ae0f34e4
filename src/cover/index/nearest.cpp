#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS HWY_AVX3_DL // nothing here would use what it adds
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cover/index/nearest.cpp"
#include "cover/index/nearest.h"

#include <hwy/foreach_target.h> // compiles the rest once for each instruction set; must come before highway.h
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace cascade::cover::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr hn::CappedTag<float, 16> tag;
constexpr int64_t together = 4;

HWY_ATTR void products(const float * HWY_RESTRICT row, const float * HWY_RESTRICT rows, int64_t size, float * out) {
    const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
    auto a = hn::Zero(tag);
    auto b = hn::Zero(tag);
    auto c = hn::Zero(tag);
    auto d = hn::Zero(tag);
    int64_t i = 0;
    for (; i + lanes <= size; i += lanes) {
        const auto value = hn::LoadU(tag, row + i);
        a = hn::MulAdd(value, hn::LoadU(tag, rows + i), a);
        b = hn::MulAdd(value, hn::LoadU(tag, rows + size + i), b);
        c = hn::MulAdd(value, hn::LoadU(tag, rows + (2 * size) + i), c);
        d = hn::MulAdd(value, hn::LoadU(tag, rows + (3 * size) + i), d);
    }
    out[0] = hn::GetLane(hn::SumOfLanes(tag, a));
    out[1] = hn::GetLane(hn::SumOfLanes(tag, b));
    out[2] = hn::GetLane(hn::SumOfLanes(tag, c));
    out[3] = hn::GetLane(hn::SumOfLanes(tag, d));
    for (; i < size; i++) {
        for (int64_t r = 0; r < together; r++) {
            out[r] += row[i] * rows[(r * size) + i];
        }
    }
}

HWY_ATTR float product(const float * HWY_RESTRICT row, const float * HWY_RESTRICT other, int64_t size) {
    const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
    auto sum = hn::Zero(tag);
    int64_t i = 0;
    for (; i + lanes <= size; i += lanes) {
        sum = hn::MulAdd(hn::LoadU(tag, row + i), hn::LoadU(tag, other + i), sum);
    }
    float total = hn::GetLane(hn::SumOfLanes(tag, sum));
    for (; i < size; i++) {
        total += row[i] * other[i];
    }
    return total;
}

HWY_ATTR Nearest nearest_row(const float * row, const float * rows, int64_t count, int64_t size) {
    Nearest best;
    const auto take = [&](int64_t index, float value) {
        if (value > best.product) {
            best = { index, value };
        }
    };
    int64_t i = 0;
    for (; i + together <= count; i += together) {
        float found[together];
        products(row, rows + (i * size), size, found);
        for (int64_t r = 0; r < together; r++) {
            take(i + r, found[r]);
        }
    }
    for (; i < count; i++) {
        take(i, product(row, rows + (i * size), size));
    }
    return best;
}

} // namespace cascade::cover::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cascade::cover {

HWY_EXPORT(nearest_row);

Nearest nearest_row(const float * row, const float * rows, int64_t count, int64_t size) {
    return HWY_DYNAMIC_DISPATCH(nearest_row)(row, rows, count, size);
}

} // namespace cascade::cover
#endif
