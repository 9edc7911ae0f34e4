#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fma_peak.cpp"
#include "fma_peak.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <hwy/foreach_target.h> // must come before highway.h
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Enough sums that none waits for itself, none the same as another. Returns the multiply-adds of a turn of 1000.
HWY_ATTR int64_t multiply_thousand(float * sink) {
    const hn::ScalableTag<float> tag;
    const auto factor = hn::Set(tag, sink[0]);
    const auto start = [&](int number) HWY_ATTR { return hn::Set(tag, sink[0] * static_cast<float>(number)); };
    auto a = start(1), b = start(2), c = start(3), d = start(4), e = start(5), f = start(6);
    auto g = start(7), h = start(8), i = start(9), j = start(10), k = start(11), l = start(12);
    for (int turn = 0; turn < 1000; turn++) {
        a = hn::MulAdd(a, factor, factor), b = hn::MulAdd(b, factor, factor), c = hn::MulAdd(c, factor, factor);
        d = hn::MulAdd(d, factor, factor), e = hn::MulAdd(e, factor, factor), f = hn::MulAdd(f, factor, factor);
        g = hn::MulAdd(g, factor, factor), h = hn::MulAdd(h, factor, factor), i = hn::MulAdd(i, factor, factor);
        j = hn::MulAdd(j, factor, factor), k = hn::MulAdd(k, factor, factor), l = hn::MulAdd(l, factor, factor);
    }
    const auto sum = hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, d)), hn::Add(hn::Add(e, f), hn::Add(g, h)));
    sink[1] = hn::GetLane(hn::Add(sum, hn::Add(hn::Add(i, j), hn::Add(k, l))));
    return int64_t(12) * 1000 * static_cast<int64_t>(hn::Lanes(tag));
}

} // namespace HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
HWY_EXPORT(multiply_thousand);

double fma_peak(double milliseconds) {
    using Clock = std::chrono::steady_clock;
    volatile float half = 0.5F;
    float sink[2] = { half, 0.0F };
    double best = 0.0;
    for (const auto begin = Clock::now();
         Clock::now() - begin < std::chrono::duration<double, std::milli>(milliseconds);) {
        const auto start = Clock::now();
        int64_t count = 0;
        for (int i = 0; i < 50; i++) {
            count += HWY_DYNAMIC_DISPATCH(multiply_thousand)(sink);
        }
        const std::chrono::duration<double> taken = Clock::now() - start;
        best = std::max(best, 2.0 * static_cast<double>(count) / taken.count() / 1e9);
    }
    return sink[1] > 0.0F ? best : 0.0;
}
#endif
