// Covers of one layer by itself: threshold, leader, and a given set.
#include "cover/leading.h"

#include <algorithm>
#include <stdexcept>

namespace cascade {

namespace {

using namespace cover;

void add_work(Work * work, uint64_t gram_entries, const Choice & choice) {
    if (work != nullptr) {
        *work += { gram_entries, choice.multiply_adds };
    }
}

void check_representatives(const TokenRows & rows, std::span<const int32_t> representatives) {
    if (!strictly_ascending(representatives) ||
        (!representatives.empty() && (representatives.front() < 0 || representatives.back() >= rows.tokens))) {
        throw std::invalid_argument("representatives must be tokens in ascending order");
    }
}

Cover assigned_cover(Choice & choice, std::span<const int32_t> representatives, Reach reach) {
    Columns columns(choice.rows.size);
    columns.add_tokens(choice.rows, representatives, choice.team);
    const auto best =
        nearest(choice, all_tokens(choice.rows.tokens), columns, reach == Reach::anywhere ? Bound::none : Bound::up_to);
    Cover cover;
    cover.representatives.assign(representatives.begin(), representatives.end());
    cover.assigned.reserve(best.size());
    cover.similarity.reserve(best.size());
    for (const Best & found : best) {
        cover.assigned.push_back(found.column >= 0 ? columns.token(found.column) : -1);
        cover.similarity.push_back(found.column >= 0 ? found.similarity : 0.0F);
    }
    for (const int32_t token : representatives) { // even where an equal one is found first
        cover.assigned[static_cast<size_t>(token)] = token;
        cover.similarity[static_cast<size_t>(token)] = 1.0F;
    }
    return cover;
}

} // namespace

Cover threshold_cover(const TokenRows & rows, const CoverOptions & options, Team & team, Work * work) {
    Choice choice{ rows, options, team };
    choice.check();
    const auto tokens = all_tokens(rows.tokens);
    std::vector<int32_t> representatives;
    {
        Columns columns(rows.size);
        columns.add_tokens(rows, tokens, team);
        const auto best = nearest(choice, tokens, columns, Bound::before);
        std::copy_if(tokens.begin(), tokens.end(), std::back_inserter(representatives),
                     [&](int32_t token) { return best[static_cast<size_t>(token)].similarity < options.threshold(); });
    }
    Cover cover = assigned_cover(choice, representatives, Reach::anywhere);
    add_work(work, static_cast<uint64_t>(rows.tokens * rows.tokens), choice);
    return cover;
}

Cover leader_cover(const TokenRows & rows, const CoverOptions & options, Team & team, Work * work) {
    Choice choice{ rows, options, team };
    choice.check();
    Led led = lead(choice, all_tokens(rows.tokens), Columns(rows.size));
    // The paper has no count for it; as it counts a triangle of pairs by its rectangle elsewhere, T r.
    add_work(work, static_cast<uint64_t>(rows.tokens) * led.leaders.size(), choice);
    return { std::move(led.leaders), std::move(led.assigned), std::move(led.similarity) };
}

Cover assign(const TokenRows & rows, std::span<const int32_t> representatives, Reach reach,
             const CoverOptions & options, Team & team, Work * work) {
    Choice choice{ rows, options, team };
    choice.check();
    check_representatives(rows, representatives);
    Cover cover = assigned_cover(choice, representatives, reach);
    add_work(work, 0, choice);
    return cover;
}

int64_t uncovered_tokens(const TokenRows & rows, std::span<const int32_t> representatives, const CoverOptions & options,
                         Team & team) {
    const Cover cover = assign(rows, representatives, Reach::earlier, options, team);
    return std::count_if(cover.similarity.begin(), cover.similarity.end(),
                         [&](float similarity) { return similarity < options.threshold(); });
}

} // namespace cascade
