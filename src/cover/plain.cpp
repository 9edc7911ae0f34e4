#include "cover/plain.h"

#include "cover/unit_row.h"

#include <algorithm>
#include <cmath>

namespace cascade::plain {

namespace {

struct Nearest {
    int32_t token = -1;
    float similarity = -2.0F;
};

// Of equally similar ones the first.
template <typename Wanted>
Nearest nearest(const Gram & gram, int32_t token, std::span<const int32_t> among, const Wanted & wanted) {
    Nearest best;
    for (const int32_t other : among) {
        if (wanted(other) && gram(token, other) > best.similarity) {
            best = { other, gram(token, other) };
        }
    }
    return best;
}

bool contains(const std::vector<int32_t> & tokens, int32_t token) {
    return std::binary_search(tokens.begin(), tokens.end(), token);
}

// A token and the nearest of some representatives before it: spoken for, or a representative itself.
void settle(Cover & cover, int32_t token, const Nearest & best, float threshold) {
    const bool spoken_for = best.similarity >= threshold;
    cover.assigned[static_cast<size_t>(token)] = spoken_for ? best.token : token;
    cover.similarity[static_cast<size_t>(token)] = spoken_for ? best.similarity : 1.0F;
    if (!spoken_for) {
        const auto place = std::lower_bound(cover.representatives.begin(), cover.representatives.end(), token);
        cover.representatives.insert(place, token);
    }
}

Cover empty_cover(int64_t tokens) {
    Cover cover;
    cover.assigned.assign(static_cast<size_t>(tokens), -1);
    cover.similarity.assign(static_cast<size_t>(tokens), 0.0F);
    return cover;
}

// Algorithm 1, line by line.
Cover inherit_printed(const Gram & gram, const Cover & below, float threshold) {
    const auto & inherited = below.representatives;
    std::vector<int32_t> valid;
    for (const int32_t s : inherited) {
        if (nearest(gram, s, inherited, [&](int32_t other) { return other < s; }).similarity < threshold) {
            valid.push_back(s);
        }
    }
    std::vector<int32_t> chosen = valid;
    for (int32_t t = 0; t < below.tokens(); t++) {
        if (!contains(inherited, t) && nearest(gram, t, valid, [](int32_t) { return true; }).similarity < threshold) {
            chosen.push_back(t);
        }
    }
    std::sort(chosen.begin(), chosen.end());
    return assign(gram, chosen, Reach::anywhere);
}

Cover inherit_in_order(const Gram & gram, const Cover & below, InheritForm form, float threshold) {
    Cover cover = empty_cover(below.tokens());
    for (const int32_t s : below.representatives) {
        settle(cover, s, nearest(gram, s, cover.representatives, [&](int32_t other) { return other < s; }), threshold);
    }
    const Cover settled = cover; // the inherited representatives, and who speaks for the removed ones
    const std::vector<int32_t> & valid = settled.representatives;
    for (int32_t t = 0; t < below.tokens(); t++) {
        if (contains(below.representatives, t)) {
            continue;
        }
        const int32_t parent = below.assigned[static_cast<size_t>(t)];
        const int32_t link = parent >= 0 ? settled.assigned[static_cast<size_t>(parent)] : -1;
        if (form == InheritForm::linked && link >= 0 && link < t && gram(t, link) >= threshold) {
            settle(cover, t, { link, gram(t, link) }, threshold);
            continue;
        }
        const auto & among = form == InheritForm::causal ? valid : cover.representatives;
        settle(cover, t, nearest(gram, t, std::vector(among), [&](int32_t other) { return other < t; }), threshold);
    }
    return cover;
}

} // namespace

Gram::Gram(const TokenRows & rows, Sign sign)
    : count(rows.tokens), entries(static_cast<size_t>(rows.tokens * rows.tokens)) {
    std::vector<std::vector<float>> unit_rows;
    for (int64_t t = 0; t < count; t++) {
        unit_rows.emplace_back(static_cast<size_t>(rows.size));
        cover::write_unit_row_inline(rows.row(t), rows.size, unit_rows.back().data(), cover::segment);
    }
    for (size_t a = 0; a < unit_rows.size(); a++) {
        for (size_t b = 0; b <= a; b++) {
            float sum = 0.0F;
            for (size_t k = 0; k < unit_rows[a].size(); k++) {
                sum = std::fma(unit_rows[a][k], unit_rows[b][k], sum);
            }
            const float similarity = sign == Sign::kept ? sum : std::fabs(sum);
            entries[(a * unit_rows.size()) + b] = entries[(b * unit_rows.size()) + a] = similarity;
        }
    }
}

Cover threshold_cover(const Gram & gram, float threshold) {
    std::vector<int32_t> representatives;
    for (int32_t t = 0; t < gram.tokens(); t++) {
        bool representative = true;
        for (int32_t s = 0; s < t; s++) {
            representative = representative && gram(t, s) < threshold;
        }
        if (representative) {
            representatives.push_back(t);
        }
    }
    return assign(gram, representatives, Reach::anywhere);
}

Cover leader_cover(const Gram & gram, float threshold) {
    Cover cover = empty_cover(gram.tokens());
    for (int32_t t = 0; t < gram.tokens(); t++) {
        settle(cover, t, nearest(gram, t, cover.representatives, [](int32_t) { return true; }), threshold);
    }
    return cover;
}

Inherited inherit_cover(const Gram & gram, const Cover & below, InheritForm form, float threshold) {
    Inherited result;
    result.cover = form == InheritForm::printed ? inherit_printed(gram, below, threshold)
                                                : inherit_in_order(gram, below, form, threshold);
    result.inherited = below.size();
    result.adds = missing_from(below.representatives, result.cover.representatives);
    result.removes = missing_from(result.cover.representatives, below.representatives);
    return result;
}

Cover assign(const Gram & gram, std::span<const int32_t> representatives, Reach reach) {
    Cover cover;
    cover.representatives.assign(representatives.begin(), representatives.end());
    for (int32_t t = 0; t < gram.tokens(); t++) {
        const auto in_reach = [&](int32_t s) { return reach == Reach::anywhere || s <= t; };
        const Nearest best = nearest(gram, t, representatives, in_reach);
        const bool itself = contains(cover.representatives, t);
        cover.assigned.push_back(itself ? t : best.token);
        cover.similarity.push_back(itself ? 1.0F : best.token < 0 ? 0.0F : best.similarity);
    }
    return cover;
}

} // namespace cascade::plain
