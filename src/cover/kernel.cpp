#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS HWY_AVX3_DL // nothing here would use what it adds
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cover/kernel.cpp"
#include "cover/kernel.h"
#include "cover/targets.h"
#include "cover/unit_row.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h> // compiles the rest once for each instruction set; must come before highway.h
#include <hwy/highway.h>

#ifndef CASCADE_MULTIPLY_PAIRS // once, for all targets to compile into their own
#define CASCADE_MULTIPLY_PAIRS
namespace cascade::cover {

[[gnu::always_inline]] inline void multiply_pairs_inline(int64_t size, const float * a, const float * const * b,
                                                         float * out) {
    float sums[pairs_together] = {};
    const float * others[pairs_together];
    std::copy_n(b, pairs_together, others);
    for (int64_t k = 0; k < size; k++) {
#pragma GCC unroll 8
        for (int i = 0; i < pairs_together; i++) {
            sums[i] = std::fma(a[(i * size) + k], others[i][k], sums[i]);
        }
    }
    std::copy_n(sums, pairs_together, out);
}

} // namespace cascade::cover
#endif

HWY_BEFORE_NAMESPACE();
namespace cascade::cover::HWY_NAMESPACE {

#if HWY_NATIVE_FMA && !HWY_HAVE_SCALABLE

namespace hn = hwy::HWY_NAMESPACE;

constexpr hn::ScalableTag<float> tag;
constexpr int lanes = static_cast<int>(HWY_LANES(float));

// As many sums as the registers hold beside a row's value and the columns': 32 registers, or 16 with AVX2.
constexpr int rows = HWY_TARGET == HWY_AVX2 ? 6 : 12;
constexpr int columns = 2 * lanes;

constexpr int ahead = 16; // values of a panel fetched before they are needed

HWY_ATTR void write_unit_row(const float * HWY_RESTRICT row, int64_t size, float * HWY_RESTRICT out, int64_t step) {
    write_unit_row_inline(row, size, out, step);
}

HWY_INLINE void load(const float * HWY_RESTRICT out, bool add, hn::Vec<decltype(tag)> (&sums)[rows][2]) {
    for (int i = 0; i < rows; i++) {
        sums[i][0] = add ? hn::LoadU(tag, out + (i * columns)) : hn::Zero(tag);
        sums[i][1] = add ? hn::LoadU(tag, out + (i * columns) + lanes) : hn::Zero(tag);
    }
}

HWY_ATTR void multiply(int64_t values, const float * HWY_RESTRICT pack, const float * HWY_RESTRICT panel,
                       float * HWY_RESTRICT out, bool add) {
    hn::Vec<decltype(tag)> sums[rows][2];
    load(out, add, sums);
    for (; values > 0; values -= segment, pack += (rows - 1) * segment) {
        for (const float * end = pack + std::min(values, segment); pack < end; pack++, panel += columns) {
            const auto left = hn::LoadU(tag, panel);
            const auto right = hn::LoadU(tag, panel + lanes);
            hwy::Prefetch(panel + (ahead * columns));
            hwy::Prefetch(panel + (ahead * columns) + lanes);
#pragma GCC unroll 12
            for (int i = 0; i < rows; i++) {
                const auto value = hn::Set(tag, pack[i * segment]);
                sums[i][0] = hn::MulAdd(value, left, sums[i][0]);
                sums[i][1] = hn::MulAdd(value, right, sums[i][1]);
            }
        }
    }
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++) {
        hn::StoreU(sums[i][0], tag, out + (i * columns));
        hn::StoreU(sums[i][1], tag, out + (i * columns) + lanes);
    }
}

// A larger product is rare once a row has seen a few columns, so all are looked at together first.
template <Sign sign>
HWY_ATTR void take_best_of(const float * HWY_RESTRICT products, int64_t count, int32_t first, Best * best) {
    for (int64_t i = 0; i < count; i++, products += columns) {
        const auto left = hn::LoadU(tag, products);
        const auto right = hn::LoadU(tag, products + lanes);
        const auto larger = sign == Sign::kept ? hn::Max(left, right) : hn::Max(hn::Abs(left), hn::Abs(right));
        if (HWY_UNLIKELY(!hn::AllFalse(tag, hn::Gt(larger, hn::Set(tag, best[i].similarity))))) {
            for (int32_t j = 0; j < columns; j++) {
                take_better(products[j], first + j, sign, best[i]);
            }
        }
    }
}

HWY_ATTR void take_best(const float * products, int64_t count, int32_t first, Sign sign, Best * best) {
    sign == Sign::kept ? take_best_of<Sign::kept>(products, count, first, best)
                       : take_best_of<Sign::ignored>(products, count, first, best);
}

// A sum in order waits for each of its additions; several pairs at a time hide that.
HWY_ATTR void multiply_pairs(int64_t size, const float * HWY_RESTRICT a, const float * const * b, float * out) {
    multiply_pairs_inline(size, a, b, out);
}

Kernel make_kernel() {
    return { isa_name(HWY_TARGET), rows, columns, write_unit_row, multiply, take_best, multiply_pairs };
}

#else // no fused multiply-add, or vectors whose length the compiler doesn't know: the plain kernel

Kernel make_kernel() { return {}; }

#endif

} // namespace cascade::cover::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cascade {

namespace cover {

namespace {

// The oracle of the others.
namespace plain {

constexpr int rows = 4;
constexpr int columns = 8;

void write_unit_row(const float * row, int64_t size, float * out, int64_t step) {
    write_unit_row_inline(row, size, out, step);
}

void multiply(int64_t values, const float * pack, const float * panel, float * out, bool add) {
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < columns; j++) {
            float sum = add ? out[(i * columns) + j] : 0.0F;
            for (int64_t k = 0; k < values; k++) {
                const float value = pack[(k / segment * segment * rows) + (i * segment) + (k % segment)];
                sum = std::fma(value, panel[(k * columns) + j], sum);
            }
            out[(i * columns) + j] = sum;
        }
    }
}

void take_best(const float * products, int64_t count, int32_t first, Sign sign, Best * best) {
    for (int64_t i = 0; i < count; i++) {
        for (int32_t j = 0; j < columns; j++) {
            take_better(products[(i * columns) + j], first + j, sign, best[i]);
        }
    }
}

void multiply_pairs(int64_t size, const float * a, const float * const * b, float * out) {
    multiply_pairs_inline(size, a, b, out);
}

} // namespace plain

HWY_EXPORT(make_kernel);

using Kernels = std::vector<Kernel>;

const Kernels & kernels() {
    static const Kernels found = find_kernels<Kernel>([] { return HWY_DYNAMIC_DISPATCH(make_kernel)(); },
                                                      { "plain", plain::rows, plain::columns, plain::write_unit_row,
                                                        plain::multiply, plain::take_best, plain::multiply_pairs });
    return found;
}

const Kernel * kernel_named(const char * name) {
    for (const Kernel & candidate : kernels()) {
        if (std::strcmp(candidate.name, name) == 0) {
            return &candidate;
        }
    }
    return nullptr;
}

const Kernel * first_choice() {
    const char * wanted = std::getenv("CASCADE_ISA");
    const Kernel * named = wanted != nullptr ? kernel_named(wanted) : nullptr;
    if (wanted != nullptr && named == nullptr) {
        std::fprintf(stderr, "cascade: CASCADE_ISA=%s is not there; using %s\n", wanted, kernels().front().name);
    }
    return named != nullptr ? named : &kernels().front();
}

std::atomic<const Kernel *> & chosen() {
    static std::atomic<const Kernel *> choice{ first_choice() };
    return choice;
}

} // namespace

const Kernel & kernel() { return *chosen().load(); }

} // namespace cover

const char * isa_in_use() { return cover::kernel().name; }

bool use_isa(const char * name) {
    const cover::Kernel * named = cover::kernel_named(name);
    if (named != nullptr) {
        cover::chosen() = named;
    }
    return named != nullptr;
}

std::vector<const char *> available_isas() {
    std::vector<const char *> names;
    for (const cover::Kernel & candidate : cover::kernels()) {
        names.push_back(candidate.name);
    }
    return names;
}

} // namespace cascade
#endif
