// Every public function of cascade/cover.h against the plain versions, to the bit, and against its own promises, on
// rows that a fuzzer makes. A difference stops the program with a message.
#include "cover/plain.h"
#include "cover_input.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <stdexcept>

using namespace cascade;
using namespace cascade::fuzz;

namespace {

void require(bool holds, const char * what) {
    if (!holds) {
        std::fprintf(stderr, "cover_fuzz: broken: %s (instruction set %s)\n", what, isa_in_use());
        __builtin_trap();
    }
}

template <typename Call>
void require_refusal(const Call & call, const char * what) {
    try {
        call();
    } catch (const std::invalid_argument &) {
        return;
    }
    require(false, what);
}

bool same(const Cover & fast, const Cover & plain) {
    return fast.representatives == plain.representatives && fast.assigned == plain.assigned &&
           fast.similarity.size() == plain.similarity.size() &&
           (fast.similarity.empty() ||
            std::memcmp(fast.similarity.data(), plain.similarity.data(), fast.similarity.size() * sizeof(float)) == 0);
}

bool contains(const std::vector<int32_t> & set, int32_t token) {
    return std::binary_search(set.begin(), set.end(), token);
}

// Every token is spoken for by itself or by an earlier representative that may speak for it.
bool covers(const plain::Gram & gram, const Cover & cover, float threshold) {
    for (int32_t t = 0; t < gram.tokens(); t++) {
        const int32_t speaker = cover.assigned[static_cast<size_t>(t)];
        const bool itself = contains(cover.representatives, t);
        if (itself ? speaker != t
                   : !contains(cover.representatives, speaker) || speaker >= t || gram(t, speaker) < threshold) {
            return false;
        }
    }
    return true;
}

bool apart(const plain::Gram & gram, const Cover & cover, float threshold) {
    for (const int32_t a : cover.representatives) {
        for (const int32_t b : cover.representatives) {
            if (a < b && gram(a, b) >= threshold) {
                return false;
            }
        }
    }
    return true;
}

// Mostly one thread: waiting for others takes longer than all the rest.
Team & read_team(ByteReader & reader) {
    static Team teams[] = { Team(1), Team(2), Team(3) };
    const int64_t which = reader.below(16);
    return teams[which < 3 ? which : 0];
}

// One layer, or the next one: rows, what is to be chosen, and the plain answers.
class Checked {
  public:
    Checked(const Rows & some_rows, const CoverOptions & some_options, Team & some_team)
        : rows(some_rows.view()), options(some_options), team(some_team), gram(rows, options.sign),
          threshold(options.threshold()), leader(plain::leader_cover(gram, threshold)),
          independent(plain::threshold_cover(gram, threshold)) {} // NOLINT(*UninitializedObject): Gram sets its own

    void alone() const;
    void prefix(int64_t tokens) const;
    void given(const std::vector<int32_t> & set) const;
    void inherited(const Cover & below) const;
    void bad_input(ByteReader & reader) const;

  private:
    void true_cover(const Cover & cover) const;

    const TokenRows rows;
    const CoverOptions options;
    Team & team;
    const plain::Gram gram;
    const float threshold;
    const Cover leader;
    const Cover independent;
};

void Checked::true_cover(const Cover & cover) const {
    require(covers(gram, cover, threshold), "a true cover speaks for every token");
    require(uncovered_tokens(rows, cover.representatives, options, team) == 0, "no token is uncovered");
    // Whoever has no similar earlier token is a representative wherever only earlier tokens are looked at.
    require(missing_from(cover.representatives, independent.representatives) == 0, "a superset of Definition 1's");
}

void Checked::alone() const {
    Work work;
    require(same(threshold_cover(rows, options, team, &work), independent), "threshold_cover as the plain one");
    require(work.gram_entries == static_cast<uint64_t>(rows.tokens * rows.tokens), "T^2 entries");
    require(apart(gram, independent, threshold), "Definition 1's are apart");
    require(same(leader_cover(rows, options, team, &work), leader), "leader_cover as the plain one");
    require(apart(gram, leader, threshold), "leaders are apart");
    true_cover(leader);
}

void Checked::prefix(int64_t tokens) const {
    TokenRows part = rows;
    part.tokens = tokens;
    const Cover cover = leader_cover(part, options, team);
    require(std::equal(cover.assigned.begin(), cover.assigned.end(), leader.assigned.begin()),
            "a prefix's leaders are the leaders' prefix");
}

void Checked::given(const std::vector<int32_t> & set) const {
    for (const Reach reach : { Reach::anywhere, Reach::earlier }) {
        require(same(assign(rows, set, reach, options, team), plain::assign(gram, set, reach)),
                "assign as the plain one");
    }
    const Cover near = plain::assign(gram, set, Reach::earlier);
    require(uncovered_tokens(rows, set, options, team) ==
                std::count_if(near.similarity.begin(), near.similarity.end(), [&](float s) { return s < threshold; }),
            "uncovered_tokens counts");
}

void Checked::inherited(const Cover & below) const {
    for (const InheritForm form : { InheritForm::printed, InheritForm::causal, InheritForm::linked }) {
        Work work;
        const Inherited fast = inherit_cover(rows, below, form, options, team, &work);
        const Inherited slow = plain::inherit_cover(gram, below, form, threshold);
        require(same(fast.cover, slow.cover), "inherit_cover as the plain one");
        require(fast.adds == slow.adds && fast.removes == slow.removes && fast.inherited == below.size(),
                "adds and removes as the plain one's");
        require(fast.cover.size() == below.size() + fast.adds - fast.removes, "r' = r + adds - removes");
        require(work.gram_entries == static_cast<uint64_t>(rows.tokens * below.size()), "T r entries");
        if (form != InheritForm::printed) {
            true_cover(fast.cover);
        }
        const bool as_leader = form == InheritForm::linked && below.size() == 0;
        require(!as_leader || same(fast.cover, leader), "linked to nothing is leader");
        require(below.size() != rows.tokens || form == InheritForm::printed || same(fast.cover, leader),
                "inherited from everybody is leader");
    }
}

void Checked::bad_input(ByteReader & reader) const {
    constexpr double bad_taus[] = {
        0.0, 1.0, -0.3, 1e-9, 7.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()
    };
    const CoverOptions bad = { bad_taus[reader.below(std::size(bad_taus))], options.sign };
    require_refusal([&] { leader_cover(rows, bad, team); }, "a bad tau is refused");
    require_refusal([&] { threshold_cover(rows, bad, team); }, "a bad tau is refused");
    require_refusal([&] { assign(rows, {}, Reach::earlier, bad, team); }, "a bad tau is refused");
    for (const TokenRows & odd : { TokenRows{ rows.data, rows.tokens, 0, rows.stride },
                                   TokenRows{ rows.data, rows.tokens, rows.size, rows.size - 1 },
                                   TokenRows{ rows.data, -1, rows.size, rows.stride },
                                   TokenRows{ rows.data, int64_t{ 1 } << 31, rows.size, rows.stride } }) {
        require_refusal([&] { leader_cover(odd, options, team); }, "bad sizes are refused");
        require_refusal([&] { inherit_cover(odd, leader, InheritForm::linked, options, team); },
                        "bad sizes are refused");
    }
    Cover hostile = leader;
    if (spoil(hostile, reader)) {
        for (const InheritForm form : { InheritForm::printed, InheritForm::causal, InheritForm::linked }) {
            require_refusal([&] { inherit_cover(rows, hostile, form, options, team); }, "a hostile cover is refused");
        }
        if (hostile.tokens() == leader.tokens() && hostile.representatives != leader.representatives) {
            require_refusal([&] { assign(rows, hostile.representatives, Reach::anywhere, options, team); },
                            "a hostile set is refused");
        }
    }
}

void check_sets(ByteReader & reader) {
    const int64_t tokens = reader.below(40);
    const auto a = read_set(reader, tokens);
    const auto b = read_set(reader, tokens);
    const auto both = std::count_if(a.begin(), a.end(), [&](int32_t token) { return contains(b, token); });
    const auto either = static_cast<int64_t>(a.size() + b.size()) - both;
    require(missing_from(a, b) == static_cast<int64_t>(b.size()) - both, "missing_from counts");
    require(jaccard(a, b) == (either == 0 ? 1.0 : static_cast<double>(both) / static_cast<double>(either)), "jaccard");
    require_refusal([&] { random_representatives(tokens, tokens + 1, 0); }, "too many drawn");
    const double start = (1.0 + reader.byte()) / 257.0;
    const double tau = adapted_tau((1.0 + reader.byte()) / 257.0, start, reader.byte() / 16.0);
    require(tau >= start / 2.0 && tau <= 2.0 * start && (tau <= 0.95 || tau == start / 2.0), "tau keeps its bounds");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t * data, size_t size) {
    ByteReader reader({ data, size });
    Team & team = read_team(reader);
    const auto isas = available_isas();
    require(use_isa(isas[static_cast<size_t>(reader.below(static_cast<int64_t>(isas.size())))]), "an available isa");
    const Rows rows = read_rows(reader);
    const CoverOptions options = read_options(reader, rows);
    const Checked layer(rows, options, team);
    layer.alone();
    layer.prefix(reader.below(rows.tokens + 1));
    layer.given(read_set(reader, rows.tokens));
    layer.bad_input(reader);
    const Cover below = read_below(reader, rows, options, team);
    const Rows next = next_layer(rows, reader);
    Checked(next, options, team).inherited(below);
    check_sets(reader);
    return 0;
}
