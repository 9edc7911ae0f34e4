// Runs of queries against their statement, over masks of every kind.
#include "attend/joint/query_runs.h"
#include "support/made_cache.h"

#include <gtest/gtest.h>

namespace cascade::attend {
namespace {

using test::between;
using test::coin;
using test::hidden;
using test::one_of;
using test::Random;

struct Masked {
    Attention a;
    std::vector<float> plain; // streams x queries x tokens
    test::Stored stored;

    explicit Masked(Random & random) {
        a.streams = between(random, 1, 3);
        a.queries = between(random, 1, 40);
        a.tokens = between(random, 1, 200);
        const bool shared = coin(random, 0.2); // one mask for all streams
        const int64_t sequences = between(random, 1, 3);
        const bool interleaved = coin(random, 0.3);
        const int64_t stride = between(random, 1, 9); // positions from a query to the next
        const int64_t count = (shared ? 1 : a.streams) * a.queries;
        for (int64_t row = 0; row < count; row++) {
            const int64_t query = row % a.queries;
            const int64_t sequence = interleaved ? query % sequences : query * sequences / a.queries;
            const bool sees = !coin(random, 0.05);
            for (int64_t token = 0; token < a.tokens; token++) {
                const bool visible = sees && token % sequences == sequence &&
                                     token <= a.tokens - (stride * (a.queries - query)) && !coin(random, 0.01);
                const float bias = coin(random, 0.02) ? one_of(random, { -0.5F, 1.0F, -0.0F }) : 0.0F;
                plain.push_back(visible ? bias : hidden);
            }
        }
        const Format format = coin(random, 0.5) ? Format::f16 : Format::f32;
        stored = test::Stored(format, static_cast<int64_t>(plain.size()));
        for (size_t i = 0; i < plain.size(); i++) {
            stored.set(static_cast<int64_t>(i), plain[i]);
        }
        a.mask = stored.rows(a.tokens, a.queries, 1);
        a.mask_streams = shared ? 1 : a.streams;
    }

    float mask(int64_t stream, int64_t query, int64_t token) const {
        return plain[static_cast<size_t>(((((stream % a.mask_streams) * a.queries) + query) * a.tokens) + token)];
    }

    int64_t difference(int64_t stream, int64_t query) const {
        int64_t count = 0;
        for (int64_t token = 0; token < a.tokens; token++) {
            count += (mask(stream, query, token) == hidden) != (mask(stream, query - 1, token) == hidden) ? 1 : 0;
        }
        return count;
    }
};

TEST(QueryRuns, AreNeighboursThatSeeNearlyTheSame) {
    std::vector<QueryRun> runs; // its memory is used again
    for (int i = 0; i < test::cases(300); i++) {
        Random random(static_cast<unsigned>(i));
        const Masked masked(random);
        const Attention & a = masked.a;
        ASSERT_TRUE(has_plain_mask(a));
        find_query_runs(a, runs);
        size_t at = 0;
        int64_t in_run = 0;
        for (int64_t stream = 0; stream < a.streams; stream++) {
            for (int64_t query = 0; query < a.queries; query++) {
                const bool starts = query == 0 || masked.difference(stream, query) > 16;
                at += starts && (stream > 0 || query > 0) ? 1 : 0;
                in_run = starts ? 1 : in_run + 1;
                ASSERT_LT(at, runs.size()) << "case " << i;
                ASSERT_EQ(runs[at].stream, stream) << "case " << i;
                ASSERT_EQ(runs[at].first + in_run - 1, query) << "case " << i;
                ASSERT_GE(runs[at].count, in_run) << "case " << i;
            }
        }
        ASSERT_EQ(at + 1, runs.size()) << "case " << i;
        int64_t queries = 0;
        for (const QueryRun & run : runs) {
            queries += run.count;
            for (int64_t token = 0; token < a.tokens; token++) {
                bool by_all = true;
                bool by_some = false;
                for (int64_t query = run.first; query < run.first + run.count; query++) {
                    by_all = by_all && masked.mask(run.stream, query, token) == 0.0F;
                    by_some = by_some || masked.mask(run.stream, query, token) != hidden;
                    ASSERT_EQ(mask_value(a, run.stream, query, token), masked.mask(run.stream, query, token));
                }
                ASSERT_EQ(run.by_all[static_cast<size_t>(token)], by_all ? 1 : 0) << "case " << i;
                ASSERT_EQ(run.by_some[static_cast<size_t>(token)], by_some ? 1 : 0) << "case " << i;
            }
        }
        ASSERT_EQ(queries, a.streams * a.queries) << "case " << i;
    }
}

TEST(QueryRuns, WithoutAMaskAllSeeAll) {
    Attention a;
    a.streams = 2, a.queries = 5, a.tokens = 7;
    std::vector<QueryRun> runs(9);
    find_query_runs(a, runs);
    ASSERT_EQ(runs.size(), 2U);
    for (int64_t stream = 0; stream < 2; stream++) {
        const QueryRun & run = runs[static_cast<size_t>(stream)];
        EXPECT_EQ(run.stream, stream);
        EXPECT_EQ(run.first, 0);
        EXPECT_EQ(run.count, 5);
        EXPECT_EQ(run.by_all, std::vector<uint8_t>(7, 1));
        EXPECT_EQ(run.by_some, std::vector<uint8_t>(7, 1));
    }
}

TEST(QueryRuns, MasksThatCannotBeReadAreNotPlain) {
    Random random(1);
    Masked masked(random);
    Attention & a = masked.a;
    a.mask.format = Format::other;
    EXPECT_FALSE(has_plain_mask(a));
    a.mask.format = Format::bf16;
    EXPECT_FALSE(has_plain_mask(a));
    a.mask.format = Format::f16;
    EXPECT_TRUE(has_plain_mask(a));
    a.mask_heads = 2;
    EXPECT_FALSE(has_plain_mask(a));
    a.mask_heads = 1;
    a.mask.value_stride = 4;
    EXPECT_FALSE(has_plain_mask(a));
    a.mask.base = nullptr;
    EXPECT_TRUE(has_plain_mask(a));
}

} // namespace
} // namespace cascade::attend
