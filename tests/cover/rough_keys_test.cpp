// Rough keys against their own promises: what is stored, how far logits may be off, and the same bits everywhere.
#include "cascade/cover.h"
#include "cover/index/rough_keys.h"
#include "support/made_cache.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

namespace cascade::cover {
namespace {

using test::between;
using test::coin;
using test::one_of;
using test::Random;

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr float infinite = std::numeric_limits<float>::infinity();

struct Made {
    int64_t heads, size, cells;
    std::vector<float> keys;  // cells x heads x size
    std::vector<float> means; // what was taken away, by the header's words
    RoughKeys rough;

    Made(Random & random, double spoiled)
        : heads(between(random, 1, 3)), size(8 * between(random, 1, 32)), cells(between(random, 1, 150)),
          rough(heads, size) {
        std::normal_distribution<float> normal;
        const float scale = one_of(random, { 1e-3F, 1.0F, 30.0F });
        const float shared = one_of(random, { 0.0F, 1.0F, 5.0F });
        keys.resize(static_cast<size_t>(cells * heads * size));
        for (size_t i = 0; i < keys.size(); i++) {
            keys[i] = scale * (normal(random) + (shared * static_cast<float>(i % 3)));
        }
        for (int64_t cell = 0; cell < cells; cell++) {
            if (coin(random, spoiled)) {
                key(cell, between(random, 0, heads - 1))[between(random, 0, size - 1)] =
                    one_of(random, { not_a_number, infinite, -infinite });
            }
            if (coin(random, 0.05)) {
                std::fill_n(key(cell, 0), size, 0.0F);
            }
        }
        const int64_t first = between(random, 1, cells);
        rough.grow(first);
        rough.set_mean(keys.data(), first);
        EXPECT_TRUE(rough.has_mean());
        find_means(first);
        for (int64_t cell = 0; cell < cells; cell++) {
            rough.grow(cell + 1);
            for (int64_t head = 0; head < heads; head++) {
                rough.write(head, cell, key(cell, head));
            }
        }
    }

    float * key(int64_t cell, int64_t head) { return keys.data() + (((cell * heads) + head) * size); }
    int64_t tiles() const { return (cells + cells_of_tile - 1) / cells_of_tile; }

    bool finite(int64_t cell, int64_t head) {
        return std::all_of(key(cell, head), key(cell, head) + size, [](float value) { return std::isfinite(value); });
    }

    int code(int64_t cell, int64_t head, int64_t i) const {
        const uint8_t * block = rough.tiles(head).tile(cell / 16) + (i / 8 * 64);
        const uint8_t byte = block[(4 * (cell % 16)) + (i % 4)];
        return i % 8 < 4 ? byte & 15 : byte >> 4;
    }

    float mean(int64_t head, int64_t i) const { return means[static_cast<size_t>((head * size) + i)]; }

  private:
    void find_means(int64_t count) {
        for (int64_t i = 0; i < heads * size; i++) {
            double sum = 0.0;
            double finite_ones = 0.0;
            for (int64_t cell = 0; cell < count; cell++) {
                const float value = keys[static_cast<size_t>((cell * heads * size) + i)];
                sum += std::isfinite(value) ? value : 0.0;
                finite_ones += std::isfinite(value) ? 1.0 : 0.0;
            }
            means.push_back(static_cast<float>(finite_ones > 0.0 ? sum / finite_ones : 0.0));
        }
    }
};

// Some query rows, rounded.
struct Rounded {
    std::vector<std::vector<float>> queries;
    std::vector<int8_t> bytes;
    std::vector<RoughQuery> rows;

    Rounded(Random & random, const Made & made, int64_t head, int64_t count, double spoiled, float scale = 1.0F) {
        std::normal_distribution<float> normal;
        bytes.resize(static_cast<size_t>(count * made.size));
        for (int64_t r = 0; r < count; r++) {
            std::vector<float> query(static_cast<size_t>(made.size));
            const float magnitude = one_of(random, { 0.01F, 1.0F, 20.0F });
            std::generate(query.begin(), query.end(), [&] { return magnitude * normal(random); });
            if (coin(random, 0.1)) {
                std::fill(query.begin(), query.end(), 0.0F);
            }
            if (coin(random, spoiled)) {
                query[static_cast<size_t>(between(random, 0, made.size - 1))] =
                    one_of(random, { not_a_number, infinite });
            }
            rows.push_back(made.rough.round(head, query.data(), scale, bytes.data() + (r * made.size)));
            queries.push_back(query);
        }
    }
};

bool same_bits(const std::vector<float> & a, const std::vector<float> & b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(RoughKeys, ValuesAreWithinHalfAStep) {
    Random random(1);
    for (int i = 0; i < test::cases(150); i++) {
        Made made(random, 0.05);
        for (int64_t cell = 0; cell < made.cells; cell++) {
            for (int64_t head = 0; head < made.heads; head++) {
                const float step = made.rough.tiles(head).steps[cell];
                for (int64_t k = 0; k < made.size && made.finite(cell, head); k++) {
                    const int code = made.code(cell, head, k);
                    ASSERT_TRUE(code >= 1 && code <= 15);
                    const double value = static_cast<double>(made.key(cell, head)[k]) - made.mean(head, k);
                    const double slack = 1e-6 * std::fabs(made.key(cell, head)[k]);
                    ASSERT_LE(std::fabs(value - (static_cast<double>(step) * (code - 8))), (0.500001 * step) + slack);
                }
            }
        }
    }
}

TEST(RoughKeys, LogitsAreWithinTheirError) {
    Random random(2);
    for (int i = 0; i < test::cases(150); i++) {
        Made made(random, 0.02);
        const int64_t head = between(random, 0, made.heads - 1);
        const int64_t count = between(random, 1, 20);
        const float scale = one_of(random, { 1.0F, 0.125F, -2.0F });
        const Rounded rounded(random, made, head, count, 0.0, scale);
        const int64_t stride = (made.tiles() * cells_of_tile) + between(random, 0, 5);
        std::vector<float> logits(static_cast<size_t>(count * stride));
        rough_logits(made.rough.tiles(head), 0, made.tiles(), rounded.rows, logits.data(), stride);
        for (int64_t r = 0; r < count; r++) {
            for (int64_t cell = 0; cell < made.cells; cell++) {
                if (!made.finite(cell, head)) {
                    continue;
                }
                double product = 0.0;
                double magnitude = 0.0;
                for (int64_t k = 0; k < made.size; k++) {
                    const double term =
                        static_cast<double>(rounded.queries[static_cast<size_t>(r)][static_cast<size_t>(k)]) *
                        made.key(cell, head)[k] * scale;
                    product += term;
                    magnitude += std::fabs(term);
                }
                const RoughQuery & row = rounded.rows[static_cast<size_t>(r)];
                const double bound = static_cast<double>(row.error) * made.rough.tiles(head).steps[cell];
                ASSERT_NEAR(logits[static_cast<size_t>((r * stride) + cell)], product, bound + (1e-5 * magnitude))
                    << "case " << i << " row " << r << " cell " << cell;
            }
        }
    }
}

// Only the tiles that were asked for are written, and the largest of the differences is what `best` is.
TEST(RoughKeys, EveryInstructionSetGivesTheSameBits) {
    Random random(3);
    const std::string before = isa_in_use();
    for (int i = 0; i < test::cases(250); i++) {
        const double spoiled = i % 3 == 0 ? 0.1 : 0.0;
        Made made(random, spoiled);
        const int64_t head = between(random, 0, made.heads - 1);
        const int64_t count = between(random, 1, 20);
        const Rounded rounded(random, made, head, count, spoiled);
        const int64_t stride = (made.tiles() * cells_of_tile) + between(random, 0, 3);
        const int64_t first = between(random, 0, made.tiles() - 1);
        const int64_t last = between(random, first, made.tiles());
        std::vector<float> thresholds(static_cast<size_t>(count));
        std::generate(thresholds.begin(), thresholds.end(), [&] { return static_cast<float>(between(random, -9, 9)); });
        std::vector<float> logits(static_cast<size_t>(count * stride), 7.0F);
        std::vector<float> best(static_cast<size_t>(stride), 7.0F);
        rough_plain.logits(made.rough.tiles(head), first, last, rounded.rows, logits.data(), stride);
        rough_plain.best(made.rough.tiles(head), first, last, rounded.rows, thresholds.data(), best.data());
        for (int64_t cell = 0; cell < stride; cell++) {
            const bool asked = cell >= first * cells_of_tile && cell < last * cells_of_tile;
            float largest = asked ? -infinite : 7.0F;
            for (int64_t r = 0; r < count && asked; r++) {
                largest = std::max(largest, logits[static_cast<size_t>((r * stride) + cell)] -
                                                thresholds[static_cast<size_t>(r)]);
            }
            ASSERT_EQ(best[static_cast<size_t>(cell)], largest);
        }
        for (const char * isa : available_isas()) {
            ASSERT_TRUE(use_isa(isa));
            std::vector<float> found(logits.size(), 7.0F);
            std::vector<float> found_best(best.size(), 7.0F);
            rough_logits(made.rough.tiles(head), first, last, rounded.rows, found.data(), stride);
            rough_best(made.rough.tiles(head), first, last, rounded.rows, thresholds.data(), found_best.data());
            for (float & value : found) { // which of all those that aren't numbers is not promised
                value = std::isnan(value) ? not_a_number : value;
            }
            for (float & value : logits) {
                value = std::isnan(value) ? not_a_number : value;
            }
            EXPECT_TRUE(same_bits(found, logits)) << isa << ", case " << i;
            EXPECT_TRUE(same_bits(found_best, best)) << isa << ", case " << i << ", rows " << count;
        }
    }
    use_isa(before.c_str());
}

// Whatever a cell holds, those beside it have logits, and so has the cell once a key is written over it.
TEST(RoughKeys, KeysThatAreNotFiniteSpoilNothing) {
    Random random(4);
    for (int i = 0; i < test::cases(50); i++) {
        Made made(random, 0.3);
        const Rounded rounded(random, made, 0, 3, 0.0);
        const int64_t stride = made.tiles() * cells_of_tile;
        std::vector<float> logits(static_cast<size_t>(3 * stride));
        rough_logits(made.rough.tiles(0), 0, made.tiles(), rounded.rows, logits.data(), stride);
        for (int64_t cell = 0; cell < made.cells; cell++) {
            ASSERT_TRUE(std::isfinite(logits[static_cast<size_t>(cell)])) << "finite key: " << made.finite(cell, 0);
        }
    }
}

TEST(RoughKeys, TinyAndHugeQueriesStayBytes) {
    Random random(5);
    for (int i = 0; i < test::cases(50); i++) {
        const Made made(random, 0.0);
        std::vector<float> query(static_cast<size_t>(made.size));
        std::vector<int8_t> bytes(query.size());
        for (const float scale : { 1e-45F, 1e-40F, 1e-38F, 1e-30F, 1e30F, 3e38F }) {
            for (float & value : query) {
                value = scale * static_cast<float>(between(random, -1000, 1000)) / 1000.0F;
            }
            const RoughQuery row = made.rough.round(0, query.data(), 1.0F, bytes.data());
            int32_t sum = 0;
            for (const int8_t byte : bytes) {
                ASSERT_GE(byte, -127);
                sum += byte;
            }
            ASSERT_EQ(row.offset, 8 * sum) << scale;
        }
    }
}

} // namespace
} // namespace cascade::cover
