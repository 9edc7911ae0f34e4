// The fast kernels against the oracle: shapes, formats, masks and threads at random, with every instruction set.
#include "attend/kernels/exact.h"
#include "cascade/cover.h"

#include "ggml.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>
#include <random>
#include <thread>
#include <utility>

namespace cascade::attend {
namespace {

constexpr float hidden = -std::numeric_limits<float>::infinity();

using Random = std::mt19937;

int64_t between(Random & random, int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
}

bool coin(Random & random, double share) { return std::bernoulli_distribution(share)(random); }

template <class T>
T one_of(Random & random, std::initializer_list<T> choices) {
    return choices.begin()[between(random, 0, static_cast<int64_t>(choices.size()) - 1)];
}

void from_f32(const void * stored, float * values, int64_t n) {
    std::memcpy(values, stored, static_cast<size_t>(n) * sizeof(float));
}

void from_f16(const void * stored, float * values, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        values[i] = ggml_fp16_to_fp32(static_cast<const ggml_fp16_t *>(stored)[i]);
    }
}

void from_bf16(const void * stored, float * values, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        values[i] = ggml_bf16_to_fp32(static_cast<const ggml_bf16_t *>(stored)[i]);
    }
}

void from_byte(const void * stored, float * values, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        values[i] = static_cast<float>(static_cast<const int8_t *>(stored)[i]) / 32.0F;
    }
}

// Values stored in a format, and how rows of them are read.
class Stored {
  public:
    Stored(Format stored_format, int64_t values) : format(stored_format), bytes(static_cast<size_t>(values) * size()) {}

    size_t size() const { return format == Format::other ? 1 : format_bytes(format); }

    void set(int64_t i, float value) {
        char * at = bytes.data() + (static_cast<size_t>(i) * size());
        const ggml_fp16_t half = ggml_fp32_to_fp16(value);
        const ggml_bf16_t brain = ggml_fp32_to_bf16(value);
        const auto byte = static_cast<int8_t>(std::clamp(value * 32.0F, -127.0F, 127.0F));
        const void * values[] = { &byte, &value, &half, &brain };
        std::memcpy(at, values[static_cast<size_t>(format)], size());
    }

    Rows rows(int64_t values, int64_t row_count, int64_t heads) const {
        Rows r;
        r.base = bytes.data();
        r.row_stride = static_cast<size_t>(values) * size();
        r.head_stride = static_cast<size_t>(row_count) * r.row_stride;
        r.stream_stride = static_cast<size_t>(heads) * r.head_stride;
        r.to_float = format == Format::f32
                         ? from_f32
                         : (format == Format::f16 ? from_f16 : (format == Format::bf16 ? from_bf16 : from_byte));
        r.format = format;
        return r;
    }

  private:
    Format format;
    std::vector<char> bytes;
};

enum class MaskKind { none, causal, holes, sequences, sliding, everything, numbers };

struct Shape {
    int64_t queries = 1, tokens = 1, group = 1, kv_heads = 1, streams = 1, key_size = 1, value_size = 1;
    Format format = Format::f32;
    Format mask_format = Format::f16;
    MaskKind mask = MaskKind::none;
    bool heads_inside = false; // heads of a token side by side, as in the engine's cache
    bool transposed = false;
    bool mask_of_heads = false;
};

Shape random_shape(Random & random, bool few) {
    Shape s;
    s.group = one_of<int64_t>(random, { 1, 2, 3, 5, 8 });
    s.queries = few ? between(random, 1, most_few_rows / s.group) : between(random, (most_few_rows / s.group) + 1, 70);
    s.tokens = one_of(random, { between(random, 1, 40), between(random, 100, 300), between(random, 500, 700) });
    s.kv_heads = between(random, 1, 3);
    s.streams = coin(random, 0.2) ? 2 : 1;
    s.key_size = one_of<int64_t>(random, { 8, 24, 37, 64, 80, 96, 128, 256 });
    s.value_size = coin(random, 0.7) ? s.key_size : one_of<int64_t>(random, { 16, 19, 64, 128 });
    s.format = one_of(random, { Format::f32, Format::f16, Format::bf16, Format::other });
    s.mask_format = one_of(random, { Format::f16, Format::f32, Format::other });
    s.mask = one_of(random, { MaskKind::none, MaskKind::causal, MaskKind::causal, MaskKind::holes, MaskKind::sequences,
                              MaskKind::sliding, MaskKind::everything, MaskKind::numbers });
    s.heads_inside = coin(random, 0.5);
    s.transposed = !s.heads_inside && coin(random, 0.3);
    s.mask_of_heads = coin(random, 0.15);
    return s;
}

float mask_value(const Shape & s, int64_t query, int64_t token, Random & random) {
    const int64_t at = s.tokens - s.queries + query;
    switch (s.mask) {
    case MaskKind::causal:
        return token <= at ? 0.0F : hidden;
    case MaskKind::holes:
        return coin(random, 0.5) ? 0.0F : hidden;
    case MaskKind::sequences:
        return token <= at && token % 3 == query % 3 ? 0.0F : hidden;
    case MaskKind::sliding:
        return token <= at && token > at - 50 ? 0.0F : hidden;
    case MaskKind::everything:
        return hidden;
    case MaskKind::numbers:
        return token <= at ? -static_cast<float>(at - token) / 8.0F : hidden;
    default:
        return 0.0F;
    }
}

// Owns the arrays of one attention op.
struct Problem {
    Shape s;
    Stored q, k, v, mask;
    std::vector<float> sinks, out;
    Attention a;

    Problem(const Shape & shape, Random & random)
        : s(shape), q(Format::f32, s.streams * s.group * s.kv_heads * s.queries * s.key_size),
          k(s.format, s.streams * s.kv_heads * s.tokens * s.key_size),
          v(s.format, s.streams * s.kv_heads * s.tokens * s.value_size),
          mask(s.mask_format == Format::other ? Format::f32 : s.mask_format,
               s.streams * mask_heads() * s.queries * s.tokens) {
        fill(q, s.streams * s.group * s.kv_heads * s.queries * s.key_size, random);
        fill(k, s.streams * s.kv_heads * s.tokens * s.key_size, random);
        fill(v, s.streams * s.kv_heads * s.tokens * s.value_size, random);
        a.queries = s.queries, a.tokens = s.tokens, a.heads = s.group * s.kv_heads, a.kv_heads = s.kv_heads;
        a.streams = s.streams, a.key_size = s.key_size, a.value_size = s.value_size;
        a.query = q.rows(s.key_size, s.queries, a.heads);
        a.key = cache_rows(k, s.key_size);
        a.value = cache_rows(v, s.value_size);
        if (s.transposed) {
            a.value.row_stride = v.size();
            a.value.value_stride = static_cast<size_t>(s.tokens) * v.size();
        }
        a.pre_scale = 1.0F / std::sqrt(static_cast<float>(s.key_size));
        set_mask(random);
        set_rest(random);
    }

    int64_t mask_heads() const { return s.mask_of_heads ? s.group * s.kv_heads : 1; }

    static void fill(Stored & stored, int64_t n, Random & random) {
        std::normal_distribution<float> normal;
        for (int64_t i = 0; i < n; i++) {
            stored.set(i, normal(random));
        }
    }

    Rows cache_rows(const Stored & stored, int64_t size) const {
        Rows rows = stored.rows(size, s.tokens, s.kv_heads);
        if (s.heads_inside) {
            rows.head_stride = rows.row_stride;
            rows.row_stride *= static_cast<size_t>(s.kv_heads);
        }
        return rows;
    }

    void set_mask(Random & random) {
        if (s.mask == MaskKind::none) {
            return;
        }
        int64_t i = 0;
        for (int64_t h = 0; h < s.streams * mask_heads(); h++) {
            for (int64_t query = 0; query < s.queries; query++) {
                for (int64_t token = 0; token < s.tokens; token++) {
                    mask.set(i++, mask_value(s, query, token, random));
                }
            }
        }
        a.mask = mask.rows(s.tokens, s.queries, mask_heads());
        a.mask.format = s.mask_format;
        a.mask_heads = mask_heads();
        a.mask_streams = s.streams;
    }

    void set_rest(Random & random) {
        if (coin(random, 0.2)) {
            a.soft_cap = 5.0F;
            a.pre_scale /= 5.0F;
        }
        a.post_scale = coin(random, 0.2) ? 1.5F : 1.0F;
        a.max_bias = s.mask != MaskKind::none && coin(random, 0.3) ? 8.0F : 0.0F;
        if (coin(random, 0.3)) {
            sinks.assign(static_cast<size_t>(a.heads), 0.0F);
            for (float & sink : sinks) {
                sink = static_cast<float>(between(random, -30, 30)) / 10.0F;
            }
            a.sinks = sinks.data();
        }
        out.assign(static_cast<size_t>(s.streams * a.heads * s.queries * s.value_size), 99.0F);
        a.out = reinterpret_cast<char *>(out.data());
        a.out_head_stride = static_cast<size_t>(s.value_size) * sizeof(float);
        a.out_query_stride = static_cast<size_t>(a.heads) * a.out_head_stride;
        a.out_stream_stride = static_cast<size_t>(s.queries) * a.out_query_stride;
    }

    std::vector<float> reference() {
        AttentionScratch scratch;
        attend_reference(a, 0, 1, scratch);
        return std::exchange(out, std::vector<float>(out.size(), 99.0F)); // a new array: see run
    }
};

// What the engine's threads do. Scratch and shared state stay from op to op, as they do there.
class Threads {
  public:
    ExactWay run(Problem & problem, int parts) {
        problem.a.out = reinterpret_cast<char *>(problem.out.data());
        scratch.resize(std::max(scratch.size(), static_cast<size_t>(parts)));
        std::vector<ExactWay> ways(static_cast<size_t>(parts));
        std::vector<std::thread> threads;
        threads.reserve(ways.size());
        for (int part = 0; part < parts; part++) {
            const auto i = static_cast<size_t>(part);
            threads.emplace_back([&, part, i] { ways[i] = attend_exact(problem.a, part, parts, shared, scratch[i]); });
        }
        for (std::thread & thread : threads) {
            thread.join();
        }
        for (const ExactWay way : ways) {
            EXPECT_EQ(way, ways[0]);
        }
        return ways[0];
    }

    std::vector<ExactScratch> scratch;

  private:
    ExactShared shared;
};

void expect_near(const std::vector<float> & found, const std::vector<float> & expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); i++) {
        ASSERT_NEAR(found[i], expected[i], 1e-4 * std::max(0.1F, std::fabs(expected[i]))) << "value " << i;
    }
}

class Kernels : public testing::TestWithParam<const char *> {
  protected:
    Kernels() : before(isa_in_use()) {
        EXPECT_TRUE(use_isa(GetParam()));
        EXPECT_STREQ(kernel().name, GetParam());
    }
    ~Kernels() override { use_isa(before.c_str()); }

  private:
    std::string before;
};

INSTANTIATE_TEST_SUITE_P(Isas, Kernels, testing::ValuesIn(available_isas()),
                         [](const auto & isa) { return std::string(isa.param); });

TEST_P(Kernels, ExactOpIsTheReference) {
    Random random(7);
    Threads threads;
    for (int i = 0; i < 120; i++) {
        const bool few = i % 2 == 0;
        Problem problem(random_shape(random, few), random);
        const std::vector<float> expected = problem.reference();
        const auto parts = static_cast<int>(between(random, 1, 3));
        SCOPED_TRACE(testing::Message() << "case " << i << ", parts " << parts << ", tokens " << problem.s.tokens
                                        << ", mask " << static_cast<int>(problem.s.mask));
        ASSERT_EQ(threads.run(problem, parts), few ? ExactWay::few : ExactWay::tiles);
        ASSERT_NO_FATAL_FAILURE(expect_near(problem.out, expected));
    }
}

// Blocks go to whoever is free, so times differ from run to run; bits don't.
TEST_P(Kernels, TimingDoesNotShow) {
    Random random(8);
    Threads threads;
    Shape shape;
    shape.queries = 200, shape.tokens = 333, shape.group = 3, shape.kv_heads = 2, shape.key_size = 64;
    shape.value_size = 64, shape.format = Format::f16, shape.mask = MaskKind::causal;
    Problem problem(shape, random);
    ASSERT_EQ(threads.run(problem, 3), ExactWay::tiles);
    const std::vector<float> first = problem.out;
    for (int i = 0; i < 5; i++) {
        std::fill(problem.out.begin(), problem.out.end(), 99.0F);
        ASSERT_EQ(threads.run(problem, 3), ExactWay::tiles);
        ASSERT_EQ(problem.out, first);
    }
}

// More columns than any memory holds: every part says so, nothing is written, and the next op is as good as any.
TEST_P(Kernels, WithoutMemoryAllPartsFail) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer's allocator aborts instead";
#endif
    Random random(12);
    Threads threads;
    Shape shape;
    shape.queries = 50, shape.tokens = 60, shape.key_size = 64, shape.value_size = 64;
    Problem problem(shape, random);
    const std::vector<float> expected = problem.reference();
    const std::vector<float> untouched = problem.out;
    problem.a.tokens = int64_t(1) << 44;
    ASSERT_EQ(threads.run(problem, 3), ExactWay::failed);
    EXPECT_EQ(problem.out, untouched);
    problem.a.tokens = shape.tokens;
    ASSERT_EQ(threads.run(problem, 3), ExactWay::tiles);
    expect_near(problem.out, expected);
}

TEST_P(Kernels, HiddenTilesAreSkipped) {
    Random random(9);
    Threads threads;
    Shape shape;
    shape.queries = 256, shape.tokens = 1024, shape.key_size = 64, shape.value_size = 64;
    shape.mask = MaskKind::sliding;
    Problem problem(shape, random);
    const std::vector<float> expected = problem.reference();
    ASSERT_EQ(threads.run(problem, 1), ExactWay::tiles);
    ASSERT_NO_FATAL_FAILURE(expect_near(problem.out, expected));
    EXPECT_GT(threads.scratch[0].tile.skipped, 2 * threads.scratch[0].tile.multiplied);
}

// Lists of tokens in any order, in several calls, with rows of the caller's own and biases: one softmax over all.
TEST_P(Kernels, ColumnsAddUp) {
    Random random(10);
    for (int i = 0; i < 20; i++) {
        Shape shape = random_shape(random, i % 2 == 0);
        shape.streams = 1;
        Problem problem(shape, random);
        const std::vector<float> expected = problem.reference();
        problem.a.out = reinterpret_cast<char *>(problem.out.data());
        std::vector<int32_t> order(static_cast<size_t>(shape.tokens));
        std::iota(order.begin(), order.end(), 0);
        std::shuffle(order.begin(), order.end(), random);
        const int64_t cut = between(random, 0, shape.tokens);
        TileScratch tile;
        FewScratch few;
        Buffer rows;
        for (int64_t kv_head = 0; kv_head < shape.kv_heads; kv_head++) {
            QueryRows queries;
            RunningSoftmax state;
            RunningSoftmax second;
            queries.fill(problem.a, kv_head, 0, 0, shape.queries, QueryLayout::packs);
            state.start(queries.rows(), shape.value_size);
            second.start(queries.rows(), shape.value_size);
            Columns columns;
            columns.reset(cut, shape.key_size, shape.value_size);
            columns.fill(0, problem.a, kv_head, 0, { order.data(), 0, cut / 2 }, rows);
            columns.fill(cut / 2, problem.a, kv_head, 0, { order.data() + (cut / 2), 0, cut - (cut / 2) }, rows);
            attend_columns(queries, columns, Masking::by_token, state, tile);
            queries.fill(problem.a, kv_head, 0, 0, shape.queries, QueryLayout::rows);
            attend_tokens(queries, { order.data() + cut, 0, shape.tokens - cut }, Masking::by_token, second, few);
            state.merge(second);
            state.finish(queries);
        }
        SCOPED_TRACE(testing::Message() << "case " << i);
        ASSERT_NO_FATAL_FAILURE(expect_near(problem.out, expected));
    }
}

TEST_P(Kernels, FindsWhatIsLargeInSomeRow) {
    Random random(12);
    for (int i = 0; i < 100; i++) {
        const int64_t count = between(random, 1, 24);
        const int64_t n = between(random, 0, 20) * row_padding;
        const int64_t step = n + between(random, 0, 40);
        const auto first = static_cast<int32_t>(between(random, 0, 1000));
        std::vector<float> scores(static_cast<size_t>(count * step));
        std::vector<float> limits(static_cast<size_t>(count));
        for (float & score : scores) {
            score = coin(random, 0.05) ? NAN : std::uniform_real_distribution<float>(0.0F, 1.0F)(random);
        }
        const float usual = one_of(random, { 0.0F, 0.5F, 0.9F, 0.99F, 2.0F });
        for (float & limit : limits) {
            limit = coin(random, 0.2) ? -hidden : usual;
        }
        std::vector<int32_t> expected;
        for (int64_t j = 0; j < n; j++) {
            bool wanted = false;
            for (int64_t row = 0; row < count; row++) {
                wanted = wanted || scores[static_cast<size_t>((row * step) + j)] >= limits[static_cast<size_t>(row)];
            }
            if (wanted) {
                expected.push_back(first + static_cast<int32_t>(j));
            }
        }
        std::vector<int32_t> found(static_cast<size_t>(n + row_padding));
        found.resize(static_cast<size_t>(
            kernel().find_at_least(limits.data(), count, n, scores.data(), step, first, found.data())));
        ASSERT_EQ(found, expected) << "case " << i;
    }
}

TEST_P(Kernels, BiasesCountColumns) {
    Random random(11);
    Shape shape;
    shape.queries = 20, shape.tokens = 150, shape.group = 3, shape.key_size = 40, shape.value_size = 24;
    Problem problem(shape, random);
    QueryRows queries;
    queries.fill(problem.a, 0, 0, 0, shape.queries, QueryLayout::packs);
    Buffer rows;
    TileScratch tile;
    Columns columns;
    RunningSoftmax state;
    // every column three times, and a column that the caller brings along twice
    std::vector<int32_t> tokens;
    tokens.reserve(450);
    for (int32_t i = 0; i < 450; i++) {
        tokens.push_back(i % 150);
    }
    const std::vector<float> key(40, 0.1F);
    const std::vector<float> value(24, 2.0F);
    columns.reset(452, 40, 24);
    columns.fill(0, problem.a, 0, 0, { tokens.data(), 0, 450 }, rows);
    columns.fill(450, key.data(), value.data(), 1);
    columns.fill(451, key.data(), value.data(), 1);
    state.start(queries.rows(), 24);
    attend_columns(queries, columns, Masking::none, state, tile);
    state.finish(queries);
    const std::vector<float> expected = std::exchange(problem.out, std::vector<float>(problem.out.size(), 99.0F));
    problem.a.out = reinterpret_cast<char *>(problem.out.data());
    const std::vector<float> biases(150, std::log(3.0F));
    const float two = std::log(2.0F);
    columns.reset(151, 40, 24, Columns::Biases::all);
    columns.fill(0, problem.a, 0, 0, { nullptr, 0, 150 }, rows);
    columns.fill(150, key.data(), value.data(), 1);
    columns.set_biases(0, biases.data(), 150);
    columns.set_biases(150, &two, 1);
    state.start(queries.rows(), 24);
    attend_columns(queries, columns, Masking::none, state, tile);
    state.finish(queries);
    expect_near(problem.out, expected);
}

} // namespace
} // namespace cascade::attend
