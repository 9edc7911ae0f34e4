#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS HWY_AVX3_DL // nothing here would use what it adds
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/exponentials.cpp"
#include "attend/exponentials.h"

#include <algorithm>
#include <hwy/foreach_target.h> // compiles the rest once for each instruction set; must come before highway.h
#include <hwy/highway.h>
// after highway.h
#include <hwy/contrib/math/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace cascade::attend::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr hn::CappedTag<float, 16> tag;

HWY_ATTR float exponentials(float * HWY_RESTRICT row, int64_t segments, int64_t step, float largest) {
    const auto shift = hn::Set(tag, largest);
    const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
    auto sum = hn::Zero(tag);
    for (int64_t s = 0; s < segments; s++, row += step) {
        for (int64_t i = 0; i < 16; i += lanes) {
            const auto value = hn::Exp(tag, hn::Sub(hn::LoadU(tag, row + i), shift));
            sum = hn::Add(sum, value);
            hn::StoreU(value, tag, row + i);
        }
    }
    return hn::GetLane(hn::SumOfLanes(tag, sum));
}

HWY_ATTR float largest_of(const float * HWY_RESTRICT row, int64_t segments, int64_t step) {
    const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
    auto largest = hn::Set(tag, row[0]);
    for (int64_t s = 0; s < segments; s++, row += step) {
        for (int64_t i = 0; i < 16; i += lanes) {
            largest = hn::Max(largest, hn::LoadU(tag, row + i));
        }
    }
    return hn::GetLane(hn::MaxOfLanes(tag, largest));
}

} // namespace cascade::attend::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cascade::attend {

HWY_EXPORT(exponentials);
HWY_EXPORT(largest_of);

float exponentials(float * row, int64_t segments, int64_t step, float largest) {
    return HWY_DYNAMIC_DISPATCH(exponentials)(row, segments, step, largest);
}

float largest_of(const float * row, int64_t segments, int64_t step) {
    return HWY_DYNAMIC_DISPATCH(largest_of)(row, segments, step);
}

} // namespace cascade::attend
#endif
