// Attention on a living cache's cover: against exact attention, against the method's statement in double, and after
// writes that were told or not.
#include "attend/joint/joint_attention.h"
#include "attend/kernels/exact.h"
#include "cascade/cover.h"
#include "support/joint_statement.h"
#include "support/made_conversation.h"
#include "support/scarce_memory.h"

#include <gtest/gtest.h>
#include <sstream>
#include <thread>

namespace cascade::attend {
namespace {

using test::between;
using test::coin;
using test::Conversation;
using test::ConversationShape;
using test::JointStatement;
using test::one_of;
using test::PastMass;
using test::Random;
using Result = JointAttention::Result;

constexpr double rounding = 2e-4; // of the values' size
constexpr double tie = 5e-4;      // of logits
constexpr size_t most_undecided = 6;

constexpr int64_t rows_together = 64; // so that turns have several groups

struct Joint : JointAttention {
    explicit Joint(float an_epsilon, int64_t audit = 0) : JointAttention(audit, rows_together), epsilon(an_epsilon) {}
    float epsilon;
};

// As the engine's threads do.
Result run(Joint & joint, const Attention & a, std::span<cover::LayerIndex * const> indexes, int parts) {
    joint.begin();
    std::vector<Result> results(static_cast<size_t>(parts));
    std::vector<std::thread> threads;
    for (int part = 1; part < parts; part++) {
        threads.emplace_back(
            [&, part] { results[static_cast<size_t>(part)] = joint.attend(a, indexes, joint.epsilon, part, parts); });
    }
    results[0] = joint.attend(a, indexes, joint.epsilon, 0, parts);
    for (std::thread & thread : threads) {
        thread.join();
    }
    for (const Result result : results) {
        EXPECT_EQ(result, results[0]);
    }
    return results[0];
}

std::vector<float> reference(Attention a, size_t size) {
    std::vector<float> out(size);
    a.out = reinterpret_cast<char *>(out.data());
    AttentionScratch scratch;
    attend_reference(a, 0, 1, scratch);
    return out;
}

void expect_near(const std::vector<float> & found, const std::vector<float> & expected, double tolerance) {
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); i++) {
        ASSERT_NEAR(found[i], expected[i], tolerance * std::max(1.0F, std::fabs(expected[i]))) << "value " << i;
    }
}

std::string describe(int number, const Conversation & conversation, const Attention & a) {
    const ConversationShape & s = conversation.shape();
    std::vector<QueryRun> runs;
    find_query_runs(a, runs);
    std::ostringstream text;
    text << "case " << number << ": " << a.queries << " queries in " << runs.size() << " runs, " << a.tokens
         << " tokens, " << a.streams << " streams, " << a.kv_heads << " KV heads, group " << s.group << ", keys "
         << a.key_size << ", values " << a.value_size << ", format " << static_cast<int>(s.cache.format)
         << ", sequences " << s.sequences << (s.masked ? "" : ", no mask") << ", window " << s.index.window
         << ", slack " << s.index.slack << ", covers " << s.index.most_covers << ", " << isa_in_use();
    return text.str();
}

// Any instruction set, and the one before afterwards.
class IsaGuard {
  public:
    explicit IsaGuard(Random & random) : before(isa_in_use()) {
        const auto isas = available_isas();
        use_isa(isas[static_cast<size_t>(between(random, 0, static_cast<int64_t>(isas.size()) - 1))]);
    }
    ~IsaGuard() { use_isa(before.c_str()); }

  private:
    std::string before;
};

// A few turns of a conversation, each handed to `look` before it is computed.
template <class Look>
void converse(Random & random, const ConversationShape & shape, const Look & look) {
    Conversation conversation(shape, random);
    conversation.read_prompt(between(random, 0, shape.cache.cells));
    const auto turns = between(random, 1, 4);
    for (int64_t turn = 0; turn < turns; turn++) {
        if (coin(random, 0.3)) {
            conversation.lose_some();
        }
        if (coin(random, 0.2)) {
            conversation.share(between(random, 0, shape.sequences - 1), between(random, 0, shape.sequences - 1));
        }
        const bool few = coin(random, 0.6);
        const int64_t queries = few ? between(random, 1, most_few_rows / shape.group)
                                    : between(random, (most_few_rows / shape.group) + 1, 50);
        Attention & a = conversation.turn(queries);
        look(conversation, a);
        if (testing::Test::HasFatalFailure()) {
            return;
        }
    }
}

// As the code takes them: few rows in one, many in groups.
std::vector<QueryRun> groups_of(const Attention & a, const QueryRun & run) {
    const bool few = run.count * (a.heads / a.kv_heads) <= most_few_rows;
    const int64_t together = few ? run.count : ManyRows::queries_together(a, rows_together);
    std::vector<QueryRun> groups;
    for (int64_t from = 0; from < run.count; from += together) {
        groups.push_back(run);
        groups.back().first = run.first + from;
        groups.back().count = std::min(together, run.count - from);
    }
    return groups;
}

// What the statement says to one turn.
struct Verdict {
    int64_t heads = 0;
    int64_t left_open = 0; // heads with too many ties
    double worst = 0.0;
    double opened = 0.0;
    double either = 0.0; // of these, and of those beside them: ties that the outputs don't tell apart
    double covered = 0.0;
    double exact = 0.0;
    double speakers = 0.0;
    int64_t rows = 0;
};

// The covers of a turn's runs, as a copy of the index finds them; none where a later run changes an earlier one's.
struct Covers {
    std::vector<QueryRun> runs;
    std::vector<cover::CellCover> covers;
    bool settled = true;

    Covers(const Attention & a, const Conversation & conversation, std::vector<cover::LayerIndex> & copies) {
        find_query_runs(a, runs);
        for (const QueryRun & queries : runs) {
            covers.push_back(cover_of(conversation, copies, queries));
        }
        for (size_t i = 0; i < runs.size(); i++) {
            const cover::CellCover again = cover_of(conversation, copies, runs[i]);
            settled = settled && again.cells() == covers[i].cells();
            for (int64_t cell = 0; cell < again.cells() && settled; cell++) {
                settled = again.cluster_of(cell) == covers[i].cluster_of(cell);
            }
        }
    }

    static cover::CellCover cover_of(const Conversation & conversation, std::vector<cover::LayerIndex> & copies,
                                     const QueryRun & queries) {
        return copies[static_cast<size_t>(queries.stream)].cover_for(
            queries.seen(), const_cast<Conversation &>(conversation).memory().cells(queries.stream));
    }
};

void judge_group(const Attention & a, const QueryRun & queries, const cover::CellCover & cover,
                 const cover::RoughKeys & rough, PastMass past_mass, float epsilon, Verdict & verdict) {
    for (int64_t head = 0; head < a.kv_heads; head++) {
        JointStatement statement(a, queries, cover, rough, head, past_mass);
        const int64_t together = queries.count * (a.heads / a.kv_heads);
        statement.find_opened(epsilon_for(epsilon, cover.covered(), together), tie);
        verdict.heads++;
        if (statement.undecided_tokens() > most_undecided) {
            verdict.left_open++;
            continue;
        }
        double nearest = std::numeric_limits<double>::infinity();
        uint32_t decision = 0;
        for (uint32_t bits = 0; bits < (1U << statement.undecided_tokens()) && !(nearest <= rounding); bits++) {
            statement.decide(bits);
            if (statement.distance() < nearest) {
                nearest = statement.distance();
                decision = bits;
            }
        }
        verdict.worst = std::max(verdict.worst, nearest);
        statement.decide(decision);
        if (nearest <= rounding) {
            ASSERT_NO_FATAL_FAILURE(statement.expect_identity(rounding));
        }
        const auto rows = static_cast<double>(statement.row_count());
        verdict.rows += static_cast<int64_t>(statement.row_count());
        verdict.opened += rows * static_cast<double>(statement.opened_tokens());
        verdict.either += rows * static_cast<double>(statement.undecided_tokens());
        verdict.speakers += rows * static_cast<double>(statement.speakers());
        verdict.covered += rows * static_cast<double>(cover.covered());
        for (int64_t token = 0; token < a.tokens; token++) {
            verdict.exact += queries.by_some[static_cast<size_t>(token)] != 0 && !cover.has(token) ? rows : 0.0;
        }
    }
}

void judge(const Attention & a, const Covers & of, const std::vector<cover::LayerIndex> & copies, float epsilon,
           Verdict & verdict) {
    for (size_t i = 0; i < of.runs.size(); i++) {
        const bool few = of.runs[i].count * (a.heads / a.kv_heads) <= most_few_rows;
        for (const QueryRun & queries : groups_of(a, of.runs[i])) {
            judge_group(a, queries, of.covers[i], copies[static_cast<size_t>(queries.stream)].rough_keys(),
                        few ? PastMass::rough : PastMass::means, epsilon, verdict);
            if (testing::Test::HasFatalFailure()) {
                return;
            }
        }
    }
}

TEST(JointAttention, WithAllOpenedItIsExact) {
    Joint joint(1e-7F);
    int done = 0;
    for (int i = 0; i < test::cases(80); i++) {
        Random random(static_cast<unsigned>(i));
        const IsaGuard isa(random);
        converse(random, test::some_conversation(random), [&](Conversation & conversation, Attention & a) {
            ASSERT_EQ(JointAttention::objection(a), nullptr);
            const Result result = run(joint, a, conversation.indexes(), static_cast<int>(between(random, 1, 3)));
            ASSERT_NE(result, Result::failed);
            done += result == Result::done ? 1 : 0;
            if (result == Result::done) {
                ASSERT_NO_FATAL_FAILURE(
                    expect_near(conversation.output(), reference(a, conversation.output().size()), rounding))
                    << describe(i, conversation, a);
            }
        });
        if (HasFatalFailure()) {
            return;
        }
    }
    EXPECT_GT(done, test::cases(80) / 2);
}

TEST(JointAttention, IsWhatTheMethodSays) {
    int done = 0;
    Verdict all;
    for (int i = 0; i < test::cases(80); i++) {
        Random random(static_cast<unsigned>(i));
        const IsaGuard isa(random);
        const float epsilon = one_of(random, { 0.02F, 0.05F, 0.12F, 0.3F, 1.0F });
        Joint joint(epsilon, 3);
        converse(random, test::some_conversation(random), [&](Conversation & conversation, Attention & a) {
            std::vector<cover::LayerIndex> copies = conversation.layer_of_streams();
            const Covers covers(a, conversation, copies);
            const JointCounts before = joint.counts();
            const Result result = run(joint, a, conversation.indexes(), static_cast<int>(between(random, 1, 3)));
            ASSERT_NE(result, Result::failed);
            if (result != Result::done || !covers.settled) {
                return;
            }
            done++;
            Verdict verdict;
            ASSERT_NO_FATAL_FAILURE(judge(a, covers, copies, epsilon, verdict)) << describe(i, conversation, a);
            ASSERT_LE(verdict.worst, rounding) << describe(i, conversation, a) << ", epsilon " << epsilon;
            all.heads += verdict.heads;
            all.left_open += verdict.left_open;
            all.worst = std::max(all.worst, verdict.worst);
            if (verdict.left_open == 0) {
                ASSERT_NEAR(joint.counts().opened - before.opened, verdict.opened, verdict.either) << "case " << i;
                ASSERT_EQ(joint.counts().covered - before.covered, verdict.covered);
                ASSERT_EQ(joint.counts().exact - before.exact, verdict.exact);
                ASSERT_NEAR(joint.counts().speakers - before.speakers, verdict.speakers, verdict.either);
                ASSERT_EQ(joint.counts().rows - before.rows, verdict.rows);
            }
        });
        ASSERT_EQ(joint.audited().above_bound, 0) << "case " << i;
        if (HasFatalFailure()) {
            return;
        }
    }
    EXPECT_GT(done, test::cases(80) / 2);
    EXPECT_LE(all.left_open, all.heads / 20);
}

ConversationShape plain_shape() {
    ConversationShape s;
    s.cache.cells = 400;
    s.cache.kv_heads = 2;
    s.cache.key_size = 32;
    s.cache.value_size = 32;
    s.group = 2;
    s.index = { 20, 5, 8, 4 };
    return s;
}

// Below what a float squared can be, all is opened, and nothing else is.
TEST(JointAttention, AnyEpsilonAboveZeroWillDo) {
    for (const float epsilon : { 1e-10F, 1e-18F, 1e-22F, 1e-30F, 1e-45F, 1e30F }) {
        for (const int64_t queries : { 1, 20 }) {
            Random random(5);
            Conversation conversation(plain_shape(), random);
            conversation.read_prompt(300);
            Joint joint(epsilon);
            Attention & a = conversation.turn(queries);
            ASSERT_EQ(run(joint, a, conversation.indexes(), 2), Result::done);
            EXPECT_EQ(joint.counts().opened, epsilon < 1.0F ? joint.counts().covered : 0.0) << epsilon;
            if (epsilon < 1.0F) {
                expect_near(conversation.output(), reference(a, conversation.output().size()), rounding);
            }
        }
    }
}

// As if the index were made just now.
TEST(JointAttention, AfterAChangeOfEverythingNothingOldIsLeft) {
    for (int i = 0; i < 20; i++) {
        Random random(static_cast<unsigned>(i));
        Conversation conversation(plain_shape(), random);
        conversation.read_prompt(300);
        Joint joint(0.1F);
        run(joint, conversation.turn(4), conversation.indexes(), 1);
        conversation.change_silently();
        conversation.layer_of_streams()[0].all_change();
        const Attention & a = conversation.turn(i % 2 == 0 ? 4 : 40);
        ASSERT_EQ(run(joint, a, conversation.indexes(), 1), Result::done);
        const std::vector<float> found = conversation.output();
        cover::LayerIndex fresh(conversation.memory().cells(0), conversation.shape().index);
        cover::LayerIndex * const indexes[] = { &fresh };
        Joint other(0.1F);
        ASSERT_EQ(run(other, a, indexes, 1), Result::done);
        EXPECT_EQ(conversation.output(), found);
    }
}

// The statement reads the cache itself: sums of what was there before are noticed.
TEST(JointAttention, AWriteThatNobodyToldShows) {
    for (int i = 0; i < 10; i++) {
        for (const bool told : { true, false }) {
            Random random(static_cast<unsigned>(i));
            Conversation conversation(plain_shape(), random);
            conversation.read_prompt(300);
            Joint joint(0.3F);
            run(joint, conversation.turn(4), conversation.indexes(), 1);
            if (told) {
                std::vector<int64_t> all(400);
                std::iota(all.begin(), all.end(), 0);
                conversation.layer_of_streams()[0].cells_change(all);
            }
            conversation.change_silently();
            const Attention & a = conversation.turn(i % 2 == 0 ? 4 : 40);
            std::vector<cover::LayerIndex> copies = conversation.layer_of_streams();
            const Covers covers(a, conversation, copies);
            ASSERT_EQ(run(joint, a, conversation.indexes(), 1), Result::done);
            Verdict verdict;
            ASSERT_NO_FATAL_FAILURE(judge(a, covers, copies, 0.3F, verdict));
            EXPECT_EQ(verdict.worst <= rounding, told) << "case " << i;
        }
    }
}

// Another sequence's values that aren't finite are nobody else's.
TEST(JointAttention, WhatIsNotSeenDoesNoHarm) {
    for (int i = 0; i < test::cases(40); i++) {
        Random random(static_cast<unsigned>(i));
        ConversationShape shape = plain_shape();
        shape.sequences = 2;
        Conversation conversation(shape, random);
        conversation.read_prompt(340);
        conversation.spoil_sequence(1, 0.05);
        Joint joint(0.1F);
        conversation.turn_of(1, 1);
        run(joint, conversation.turn_of(1, 1), conversation.indexes(), 1); // rough keys are written
        const JointCounts before = joint.counts();
        const Attention & a = conversation.turn_of(0, i % 2 == 0 ? 3 : 30);
        std::vector<cover::LayerIndex> copies = conversation.layer_of_streams();
        const Covers covers(a, conversation, copies);
        if (run(joint, a, conversation.indexes(), 2) == Result::done) {
            Verdict verdict;
            ASSERT_NO_FATAL_FAILURE(judge(a, covers, copies, 0.1F, verdict));
            EXPECT_LE(verdict.worst, rounding) << "case " << i;
            EXPECT_NEAR(joint.counts().opened - before.opened, verdict.opened, verdict.either);
        }
    }
}

// Whenever memory runs out, all parts hear of it; and with memory again all is as it should be.
TEST(JointAttention, OutOfMemoryIsNotForEver) {
    int failures = 0;
    for (int i = 0; i < test::cases(60); i++) {
        Random random(static_cast<unsigned>(i));
        ConversationShape shape = plain_shape();
        shape.sequences = between(random, 1, 2);
        Conversation conversation(shape, random);
        conversation.read_prompt(340);
        Joint joint(0.1F);
        const int64_t queries = i % 2 == 0 ? 3 : 15;
        if (coin(random, 0.6)) { // the index is there, or all but the latest memory
            run(joint, conversation.turn(coin(random, 0.5) ? 3 : queries), conversation.indexes(), 1);
        }
        const Attention & a = conversation.turn(queries);
        {
            std::vector<Result> results(2);
            const auto indexes = conversation.indexes();
            joint.begin();
            std::thread other([&] { results[1] = joint.attend(a, indexes, joint.epsilon, 1, 2); });
            {
                const test::ScarceMemory memory(one_of(random, { between(random, 0, 80), between(random, 80, 400) }));
                results[0] = joint.attend(a, indexes, joint.epsilon, 0, 2);
            }
            other.join();
            ASSERT_EQ(results[0], results[1]);
            failures += results[0] == Result::failed ? 1 : 0;
        }
        joint.begin();
        std::vector<cover::LayerIndex> copies = conversation.layer_of_streams();
        const Covers covers(a, conversation, copies);
        ASSERT_EQ(run(joint, a, conversation.indexes(), 2), Result::done) << "case " << i;
        Verdict verdict;
        ASSERT_NO_FATAL_FAILURE(judge(a, covers, copies, 0.1F, verdict));
        ASSERT_TRUE(!covers.settled || verdict.worst <= rounding) << "case " << i;
    }
    EXPECT_GT(failures, test::cases(60) / 10);
}

} // namespace
} // namespace cascade::attend
