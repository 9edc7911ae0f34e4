#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS HWY_AVX3_DL // nothing here would use what it adds; the same sets as src/cover/kernel.cpp
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/kernel.cpp"
#include "attend/kernels/kernel.h"
#include "cascade/cover.h"

#include <algorithm>
#include <cstring>
#include <hwy/foreach_target.h> // compiles the rest once for each instruction set; must come before highway.h
#include <hwy/highway.h>
#include <vector>

#if HWY_NATIVE_FMA && !HWY_HAVE_SCALABLE
#include "attend/kernels/row_ops_inl.h"
#include "attend/kernels/tile_ops_inl.h"
#endif

HWY_BEFORE_NAMESPACE();
namespace cascade::attend::HWY_NAMESPACE {

#if HWY_NATIVE_FMA && !HWY_HAVE_SCALABLE

// As in src/cover/kernel.cpp.
const char * target_name() {
    switch (HWY_TARGET) {
    case HWY_AVX2:
        return "avx2";
    case HWY_AVX3:
        return "avx512";
    case HWY_NEON:
        return "neon";
    default:
        return hwy::TargetName(HWY_TARGET);
    }
}

Kernel make_kernel() {
    static_assert(tile_columns % columns == 0 && row_padding % lanes == 0);
    return { target_name(), rows,       columns,    to_float, transpose, multiply,
             weigh,         add_values, visibility, dot_rows, add_rows };
}

#else // no fused multiply-add, or vectors whose length the compiler doesn't know: the plain kernel

Kernel make_kernel() { return {}; }

#endif

} // namespace cascade::attend::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cascade::attend {

namespace {

HWY_EXPORT(make_kernel);

std::vector<Kernel> find_kernels() {
    std::vector<Kernel> found;
    found.reserve(8);
    for (int64_t targets = hwy::SupportedTargets(); targets != 0; targets &= targets - 1) {
        hwy::SetSupportedTargetsForTest(targets & -targets); // the lowest bit is the best target
        hwy::GetChosenTarget().Update(hwy::SupportedTargets());
        const Kernel candidate = HWY_DYNAMIC_DISPATCH(make_kernel)();
        const auto same = [&](const Kernel & other) { return other.multiply == candidate.multiply; };
        if (candidate.multiply != nullptr && std::none_of(found.begin(), found.end(), same)) {
            found.push_back(candidate);
        }
    }
    hwy::SetSupportedTargetsForTest(0); // all again
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    found.push_back(plain_kernel);
    return found;
}

} // namespace

const Kernel & kernel() {
    const char * wanted = isa_in_use(); // finds covers' kernels first: both ask Highway in the same way
    static const std::vector<Kernel> kernels = find_kernels();
    for (const Kernel & candidate : kernels) {
        if (std::strcmp(candidate.name, wanted) == 0) {
            return candidate;
        }
    }
    return kernels.back();
}

} // namespace cascade::attend
#endif
