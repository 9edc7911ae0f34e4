// Finding what was compiled for each instruction set and runs on this machine. For files that Highway compiles once for
// each of its targets.
#pragma once

#include <algorithm>
#include <cstdint>
#include <hwy/targets.h>
#include <vector>

namespace cascade::cover {

// The names that a person gives and reads: CASCADE_ISA.
inline const char * isa_name(int64_t target) {
    switch (target) {
    case HWY_AVX2:
        return "avx2";
    case HWY_AVX3:
        return "avx512";
    case HWY_NEON:
        return "neon";
    default:
        return hwy::TargetName(target);
    }
}

// Kernels that this machine can run, best first, `plain` last. `make` is HWY_DYNAMIC_DISPATCH(…)() of the caller's own
// table; a kernel without `multiply` isn't there.
template <typename Kernel, typename Make>
std::vector<Kernel> find_kernels(const Make & make, const Kernel & plain) {
    std::vector<Kernel> found;
    for (int64_t targets = hwy::SupportedTargets(); targets != 0; targets &= targets - 1) {
        hwy::SetSupportedTargetsForTest(targets & -targets); // the lowest bit is the best target
        hwy::GetChosenTarget().Update(hwy::SupportedTargets());
        const Kernel candidate = make();
        const auto same = [&](const Kernel & other) { return other.multiply == candidate.multiply; };
        if (candidate.multiply != nullptr && std::none_of(found.begin(), found.end(), same)) {
            found.push_back(candidate);
        }
    }
    hwy::SetSupportedTargetsForTest(0); // all again
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    found.push_back(plain);
    return found;
}

} // namespace cascade::cover
