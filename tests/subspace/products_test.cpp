// Products, second moments and images against sums in doubles.
#include "cascade/cover.h"
#include "subspace/image.h"
#include "subspace/made_inputs.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace cascade::subspace {
namespace {

using test::noise;
using test::Rows;

// The error that sums of `depth` products of unit size may have in floats.
float allowed(int64_t depth) { return 1e-6F * static_cast<float>(depth) + 1e-5F; }

double plain_product(const Rows & a, bool transposed, const Rows & b, int64_t i, int64_t j) {
    double sum = 0.0;
    for (int64_t k = 0; k < b.count; k++) {
        sum += static_cast<double>(transposed ? a.view().row(k)[i] : a.view().row(i)[k]) *
               static_cast<double>(b.view().row(k)[j]);
    }
    return sum;
}

TEST(Products, AreSumsOverRandomShapes) {
    std::mt19937 numbers(7);
    for (int round = 0; round < 60; round++) {
        Team team(1 + (round % 3));
        const auto size = [&](int most) { return static_cast<int64_t>(1 + (numbers() % static_cast<unsigned>(most))); };
        const int64_t m = size(210);
        const int64_t n = size(130);
        const int64_t depth = round % 4 == 0 ? size(1300) : size(60);
        const bool transposed = round % 2 == 1;
        const Rows a = transposed ? noise(depth, m, numbers()) : noise(m, depth, numbers());
        const Rows b = noise(depth, n, numbers());
        std::vector<float> out(static_cast<size_t>(m * n), -1.0F);
        multiply(a.view(), transposed, b.view(), out.data(), team);
        for (int64_t i = 0; i < m; i++) {
            for (int64_t j = 0; j < n; j++) {
                ASSERT_NEAR(out[static_cast<size_t>((i * n) + j)], plain_product(a, transposed, b, i, j),
                            allowed(depth))
                    << m << " x " << depth << " x " << n << " at " << i << ", " << j;
            }
        }
    }
}

TEST(Products, HaveTheSameBitsOnEveryInstructionSetAndTeam) {
    const std::string before = isa_in_use();
    const Rows a = noise(150, 700, 1);
    const Rows b = noise(700, 77, 2);
    std::vector<std::vector<float>> results;
    for (const char * isa : available_isas()) {
        ASSERT_TRUE(use_isa(isa));
        for (const int threads : { 1, 3 }) {
            Team team(threads);
            results.emplace_back(150 * 77);
            multiply(a.view(), false, b.view(), results.back().data(), team);
        }
    }
    ASSERT_TRUE(use_isa(before.c_str()));
    for (const auto & result : results) {
        EXPECT_EQ(result, results.front());
    }
}

TEST(SecondMoments, AreTheSumsOfTheRowsProducts) {
    std::mt19937 numbers(9);
    Team team(2);
    for (const int64_t width : { 1, 5, 95, 96, 97, 200, 333 }) {
        const auto count = static_cast<int64_t>(1 + (numbers() % 1200));
        const Rows rows = noise(count, width, numbers());
        const SecondMoments moments = test::moments_of(rows, team);
        const std::vector<float> whole = moments.whole(team);
        double trace = 0.0;
        for (int64_t i = 0; i < width; i++) {
            for (int64_t j = 0; j < width; j++) {
                const double plain = plain_product(rows, true, rows, i, j);
                ASSERT_NEAR(moments.at(i, j), plain, allowed(count)) << width << " at " << i << ", " << j;
                ASSERT_EQ(whole[static_cast<size_t>((i * width) + j)], moments.at(i, j));
                trace += i == j ? plain : 0.0;
            }
        }
        EXPECT_NEAR(moments.trace(), trace, 1e-5 * trace);
        EXPECT_EQ(moments.tokens(), count);
        EXPECT_EQ(moments.raw().size() * sizeof(float), SecondMoments::bytes(width));
    }
}

TEST(SecondMoments, GoOnAfterAnInterruptionToTheSameBits) {
    Team team(2);
    const Rows rows = noise(1536, 150, 3);
    const auto part = [&](int64_t i) { return MatrixView{ rows.values.data() + (i * 512 * 150), 512, 150, 150 }; };
    PackedRun scratch;
    SecondMoments straight(150);
    SecondMoments first(150);
    for (int64_t i = 0; i < 3; i++) {
        straight.add(part(i), scratch, team);
    }
    first.add(part(0), scratch, team);
    SecondMoments second(150);
    second.restore(first.raw(), first.tokens());
    Team other(1);
    second.add(part(1), scratch, other);
    second.add(part(2), scratch, other);
    EXPECT_EQ(second.tokens(), 1536);
    EXPECT_TRUE(std::equal(straight.raw().begin(), straight.raw().end(), second.raw().begin()));
}

TEST(Image, IsTheWeightsTimesTheBasis) {
    Team team(2);
    const Rows basis = noise(17, 130, 4);
    const Rows weights = noise(205, 130, 5);
    const ImageOf image(basis.view());
    std::vector<float> out(205 * 17);
    image.rows(weights.view(), out.data(), team);
    for (int64_t i = 0; i < 205; i++) {
        for (int64_t k = 0; k < 17; k++) {
            double sum = 0.0;
            for (int64_t j = 0; j < 130; j++) {
                sum += static_cast<double>(weights.view().row(i)[j]) * static_cast<double>(basis.view().row(k)[j]);
            }
            ASSERT_NEAR(out[static_cast<size_t>((i * 17) + k)], sum, allowed(130));
        }
    }
}

} // namespace
} // namespace cascade::subspace
