// The cover of a layer from that of the layer below: Algorithm 1 of the paper, and its two corrections.
#include "cover/leading.h"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace cascade {

namespace {

using namespace cover;

using Tokens = std::vector<int32_t>;

constexpr size_t links_together = pairs_together; // as size_t, to count with

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
    int32_t link_of(int32_t token) const;
    void write_unit_rows(std::span<const int32_t> tokens, float * out) const;
    void test_links(std::span<const int32_t> tokens, const std::vector<float> & valid_rows,
                    std::span<float> similarity);
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
    Led led = lead(choice, below.representatives, Columns(rows.size));
    for (size_t i = 0; i < below.representatives.size(); i++) {
        assign_to(below.representatives[i], led.assigned[i], led.similarity[i]);
    }
    valid = std::move(led.leaders);
    valid_columns = std::move(led.columns);
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

// Where a token's link leads: to whoever speaks now for the representative it had below; -1 where that is none before
// it.
int32_t Inheritance::link_of(int32_t token) const {
    const int32_t parent = below.assigned[static_cast<size_t>(token)];
    const int32_t speaker = parent >= 0 ? cover.assigned[static_cast<size_t>(parent)] : -1;
    return speaker < token ? speaker : -1;
}

void Inheritance::write_unit_rows(std::span<const int32_t> tokens, float * out) const {
    for (size_t i = 0; i < tokens.size(); i++, out += rows.size) {
        kernel().write_unit_row(rows.row(tokens[i]), rows.size, out, segment);
    }
}

// The similarity of each of a few tokens to the end of its link; -2 where it has none.
void Inheritance::test_links(std::span<const int32_t> tokens, const std::vector<float> & valid_rows,
                             std::span<float> similarity) {
    thread_local std::vector<float> token_rows;
    token_rows.resize(pairs_together * static_cast<size_t>(rows.size)); // the last few have stale neighbours
    write_unit_rows(tokens, token_rows.data());
    std::array<const float *, pairs_together> ends = {};
    ends.fill(token_rows.data());
    for (size_t i = 0; i < tokens.size(); i++) {
        if (const int32_t link = link_of(tokens[i]); link >= 0) {
            const auto place = std::lower_bound(valid.begin(), valid.end(), link) - valid.begin();
            ends[i] = valid_rows.data() + (place * rows.size);
        }
    }
    std::array<float, pairs_together> products = {};
    kernel().multiply_pairs(rows.size, token_rows.data(), ends.data(), products.data());
    for (size_t i = 0; i < tokens.size(); i++) {
        const bool has_link = ends[i] != token_rows.data();
        similarity[i] = has_link ? similarity_of(products[i], choice.options.sign) : -2.0F;
    }
    choice.multiply_adds += tokens.size() * static_cast<uint64_t>(rows.size);
}

// Tests all links, keeps those that hold, returns the other tokens.
Tokens Inheritance::broken_links(const Tokens & tokens) {
    std::vector<float> valid_rows(valid.size() * static_cast<size_t>(rows.size));
    const auto groups = (valid.size() + links_together - 1) / links_together;
    choice.team.run(static_cast<int64_t>(groups), [&](int64_t group) {
        const size_t first = static_cast<size_t>(group) * links_together;
        write_unit_rows(std::span(valid).subspan(first, std::min(links_together, valid.size() - first)),
                        valid_rows.data() + (first * static_cast<size_t>(rows.size)));
    });
    std::vector<float> similarity(tokens.size());
    const auto chunks = (tokens.size() + links_together - 1) / links_together;
    choice.team.run(static_cast<int64_t>(chunks), [&](int64_t chunk) {
        const size_t first = static_cast<size_t>(chunk) * links_together;
        const size_t count = std::min(links_together, tokens.size() - first);
        test_links(std::span(tokens).subspan(first, count), valid_rows, std::span(similarity).subspan(first, count));
    });
    Tokens broken;
    for (size_t i = 0; i < tokens.size(); i++) {
        if (similarity[i] >= threshold) {
            assign_to(tokens[i], link_of(tokens[i]), similarity[i]);
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
