#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS HWY_AVX3_DL // nothing here would use what it adds; the same sets as src/cover/kernel.cpp
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/kernel.cpp"
#include "attend/kernels/kernel.h"
#include "cascade/cover.h"
#include "cover/targets.h"

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

Kernel make_kernel() {
    static_assert(tile_columns % columns == 0 && row_padding % lanes == 0);
    return { cover::isa_name(HWY_TARGET),
             rows,
             columns,
             to_float,
             transpose,
             multiply,
             weigh,
             add_values,
             find_at_least,
             visibility,
             dot_rows,
             add_rows };
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

} // namespace

const Kernel & kernel() {
    const char * wanted = isa_in_use(); // finds covers' kernels first: both ask Highway in the same way
    static const std::vector<Kernel> kernels =
        cover::find_kernels<Kernel>([] { return HWY_DYNAMIC_DISPATCH(make_kernel)(); }, plain_kernel);
    for (const Kernel & candidate : kernels) {
        if (std::strcmp(candidate.name, wanted) == 0) {
            return candidate;
        }
    }
    return kernels.back();
}

} // namespace cascade::attend
#endif
