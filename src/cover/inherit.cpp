// The cover of a layer from that of the layer below: Algorithm 1 of the paper, and its two corrections.
#include "cover/leading.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace cascade {

namespace {

using namespace cover;

using Tokens = std::vector<int32_t>;

void check_below(const TokenRows & rows, const Cover & below) {
    const auto outside = [&](int32_t token) { return token < 0 || token >= rows.tokens; };
    if (below.tokens() != rows.tokens || below.similarity.size() != below.assigned.size() ||
        !strictly_ascending(below.representatives) ||
        std::any_of(below.representatives.begin(), below.representatives.end(), outside) ||
        std::any_of(below.assigned.begin(), below.assigned.end(),
                    [&](int32_t token) { return token >= rows.tokens; })) {
        throw std::invalid_argument("the cover of the layer below is of other tokens");
    }
}

Tokens others(int64_t tokens, const Tokens & chosen) {
    Tokens result;
    const Tokens all = all_tokens(tokens);
    std::set_difference(all.begin(), all.end(), chosen.begin(), chosen.end(), std::back_inserter(result));
    return result;
}

Tokens merged(const Tokens & a, const Tokens & b) {
    Tokens result;
    std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(result));
    return result;
}

class Inheritance {
  public:
    Inheritance(Choice & a_choice, const Cover & cover_below)
        : choice(a_choice), below(cover_below), valid_columns(choice.rows.size) {}

    Inherited printed();
    Inherited causal();
    Inherited linked();

  private:
    void keep_valid_leaders();
    void assign_to(int32_t token, int32_t representative, float similarity);
    void start_cover();
    Tokens broken_links(const Tokens & tokens);
    Inherited result(const Tokens & valid, const Tokens & fresh);

    Choice & choice;
    const Cover & below;
    const TokenRows & rows = choice.rows;
    const float threshold = choice.options.threshold();
    Columns valid_columns;
    Tokens valid; // inherited representatives that stay
    Cover cover;
};

void Inheritance::start_cover() {
    cover.assigned.assign(static_cast<size_t>(rows.tokens), -1);
    cover.similarity.assign(static_cast<size_t>(rows.tokens), 0.0F);
}

void Inheritance::assign_to(int32_t token, int32_t representative, float similarity) {
    cover.assigned[static_cast<size_t>(token)] = representative;
    cover.similarity[static_cast<size_t>(token)] = token == representative ? 1.0F : similarity;
}

Inherited Inheritance::result(const Tokens & kept, const Tokens & fresh) {
    cover.representatives = merged(kept, fresh);
    return { std::move(cover), below.size(), static_cast<int64_t>(fresh.size()),
             below.size() - static_cast<int64_t>(kept.size()) };
}

// Lines 1 to 11. An inherited representative is compared with all earlier inherited ones, kept or not; every other
// token with all valid ones, earlier or later; new ones not with each other.
Inherited Inheritance::printed() {
    const Tokens & inherited = below.representatives;
    {
        Columns columns(rows.size);
        columns.add_tokens(rows, inherited, choice.team);
        const auto best = nearest(choice, inherited, columns, Bound::before);
        for (size_t i = 0; i < inherited.size(); i++) {
            if (best[i].similarity < threshold) {
                valid.push_back(inherited[i]);
            }
        }
    }
    valid_columns.add_tokens(rows, valid, choice.team);
    const Tokens rest = others(rows.tokens, inherited);
    const auto best = nearest(choice, rest, valid_columns, Bound::none);
    Tokens fresh;
    for (size_t i = 0; i < rest.size(); i++) {
        if (best[i].similarity < threshold) {
            fresh.push_back(rest[i]);
        }
    }
    Work assigning;
    cover = assign(rows, merged(valid, fresh), Reach::anywhere, choice.options, choice.team, &assigning);
    choice.multiply_adds += assigning.multiply_adds;
    return result(valid, fresh);
}

// An inherited representative stays unless an earlier one *that stays* speaks for it, so every removed one is spoken
// for.
void Inheritance::keep_valid_leaders() {
    start_cover();
    const Led led = lead(choice, below.representatives, Columns(rows.size));
    for (size_t i = 0; i < below.representatives.size(); i++) {
        assign_to(below.representatives[i], led.assigned[i], led.similarity[i]);
    }
    valid = led.leaders;
    valid_columns.add_tokens(rows, valid, choice.team);
}

Inherited Inheritance::causal() {
    keep_valid_leaders();
    const Tokens rest = others(rows.tokens, below.representatives);
    const auto best = nearest(choice, rest, valid_columns, Bound::before);
    Tokens fresh;
    for (size_t i = 0; i < rest.size(); i++) {
        if (best[i].similarity < threshold) {
            fresh.push_back(rest[i]);
            assign_to(rest[i], rest[i], 1.0F);
        } else {
            assign_to(rest[i], valid_columns.token(best[i].column), best[i].similarity);
        }
    }
    return result(valid, fresh);
}

// Tests each token's link to the representative it had below, keeps those that hold, returns the other tokens.
Tokens Inheritance::broken_links(const Tokens & tokens) {
    constexpr int64_t together = 16;
    const auto chunks = (static_cast<int64_t>(tokens.size()) + together - 1) / together;
    std::vector<float> similarity(tokens.size(), -2.0F);
    const Kernel & ops = kernel();
    choice.team.run(chunks, [&](int64_t chunk) {
        const auto first = static_cast<size_t>(chunk * together);
        const auto count = std::min(static_cast<size_t>(together), tokens.size() - first);
        thread_local std::vector<float> unit_rows;
        unit_rows.resize(static_cast<size_t>(2 * together * rows.size));
        const float * a[together];
        const float * b[together];
        size_t at[together];
        int pairs = 0;
        for (size_t i = first; i < first + count; i++) {
            const int32_t parent = below.assigned[static_cast<size_t>(tokens[i])];
            if (parent >= tokens[i] || !std::binary_search(valid.begin(), valid.end(), parent)) {
                continue;
            }
            float * pair = unit_rows.data() + (2 * pairs * rows.size);
            ops.write_unit_row(rows.row(tokens[i]), rows.size, pair);
            ops.write_unit_row(rows.row(parent), rows.size, pair + rows.size);
            a[pairs] = pair;
            b[pairs] = pair + rows.size;
            at[pairs] = i;
            pairs++;
        }
        float products[together];
        ops.multiply_pairs(rows.size, a, b, pairs, products);
        for (int i = 0; i < pairs; i++) {
            similarity[at[i]] = choice.options.sign == Sign::kept ? products[i] : std::fabs(products[i]);
        }
        choice.multiply_adds += static_cast<uint64_t>(pairs * rows.size);
    });
    Tokens broken;
    for (size_t i = 0; i < tokens.size(); i++) {
        if (similarity[i] >= threshold) {
            assign_to(tokens[i], below.assigned[static_cast<size_t>(tokens[i])], similarity[i]);
        } else {
            broken.push_back(tokens[i]);
        }
    }
    return broken;
}

Inherited Inheritance::linked() {
    keep_valid_leaders();
    const Tokens broken = broken_links(others(rows.tokens, below.representatives));
    const Led led = lead(choice, broken, valid_columns);
    for (size_t i = 0; i < broken.size(); i++) {
        assign_to(broken[i], led.assigned[i], led.similarity[i]);
    }
    return result(valid, led.leaders);
}

} // namespace

Inherited inherit_cover(const TokenRows & rows, const Cover & below, InheritForm form, const CoverOptions & options,
                        Team & team, Work * work) {
    Choice choice{ rows, options, team };
    choice.check();
    check_below(rows, below);
    Inheritance inheritance(choice, below);
    Inherited inherited = form == InheritForm::printed  ? inheritance.printed()
                          : form == InheritForm::causal ? inheritance.causal()
                                                        : inheritance.linked();
    if (work != nullptr) {
        // r^2 + (T - r) r, equation (6), whatever the form really compares.
        *work += { static_cast<uint64_t>(rows.tokens * below.size()), choice.multiply_adds };
    }
    return inherited;
}

} // namespace cascade
