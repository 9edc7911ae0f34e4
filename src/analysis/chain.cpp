#include "analysis/chain.h"

#include <algorithm>
#include <chrono>

namespace cascade::analysis {

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

InheritForm form_of(Method method) {
    if (method == Method::inherit) {
        return InheritForm::printed;
    }
    return method == Method::causal ? InheritForm::causal : InheritForm::linked;
}

// True covers by construction; the others are looked at, adaptive because its tau is not the one asked for.
bool covers_all(Method method) {
    return method == Method::leader || method == Method::causal || method == Method::linked;
}

} // namespace

std::optional<Method> method_named(const std::string & name) {
    const auto * found = std::find(method_names.begin(), method_names.end(), name);
    if (found == method_names.end()) {
        return std::nullopt;
    }
    return static_cast<Method>(found - method_names.begin());
}

Chain::Chain(std::string source_name, const ChainOptions & chain_options, Team & a_team)
    : source(std::move(source_name)), options(chain_options), team(a_team) {
    for (const Method method : options.methods) {
        state(method).wanted = true;
    }
    state(Method::threshold).wanted = true; // what the others are compared with
    for (size_t i = 0; i < method_count; i++) {
        states[i].tau = options.cover.tau;
        states[i].series = { source, options.cover.tau, static_cast<Method>(i), {}, {} };
    }
}

Chain::Step Chain::choose_inherited(Method method, const TokenRows & rows) {
    Step step;
    State & own = state(method);
    CoverOptions cover_options = options.cover;
    if (layer == 0) { // the paper starts from the independent choice; the corrections from a true cover
        step.cover = method == Method::inherit ? threshold_cover(rows, cover_options, team, &step.work)
                                               : leader_cover(rows, cover_options, team, &step.work);
        step.work.gram_entries = static_cast<uint64_t>(rows.tokens * rows.tokens);
        return step;
    }
    if (method == Method::adaptive && layer > 1) {
        own.tau = adapted_tau(own.tau, options.cover.tau, own.series.layers.back()[Figure::turnover]);
    }
    cover_options.tau = own.tau;
    Inherited inherited = inherit_cover(rows, own.cover, form_of(method), cover_options, team, &step.work);
    step.cover = std::move(inherited.cover);
    return step;
}

Chain::Step Chain::choose(Method method, const TokenRows & rows) {
    Step step;
    switch (method) {
    case Method::threshold:
        step.cover = threshold_cover(rows, options.cover, team, &step.work);
        break;
    case Method::leader:
        step.cover = leader_cover(rows, options.cover, team, &step.work);
        break;
    case Method::unvalidated:
        step.cover = assign(rows, independent.front(), Reach::anywhere, options.cover, team, &step.work);
        step.work.gram_entries = layer == 0 ? static_cast<uint64_t>(rows.tokens * rows.tokens) : 0;
        break;
    case Method::random: {
        const auto count = static_cast<int64_t>(independent.back().size());
        const auto set = random_representatives(rows.tokens, count, options.seed + static_cast<uint64_t>(layer));
        step.cover = assign(rows, set, Reach::anywhere, options.cover, team, &step.work);
        break; // no choice, so no Gram entries to count
    }
    default:
        return choose_inherited(method, rows);
    }
    return step;
}

Figures Chain::figures_of(Method method, const TokenRows & rows, const Step & step, double seconds) {
    const State & own = state(method);
    const auto & set = step.cover.representatives;
    const auto & before = own.cover.representatives; // of the layer before
    const auto & reference = independent.back();
    Figures figures;
    figures[Figure::tau] = own.tau;
    figures[Figure::r] = static_cast<double>(set.size());
    if (layer > 0) {
        const int64_t adds = missing_from(before, set);
        const int64_t removes = missing_from(set, before);
        figures[Figure::adds] = static_cast<double>(adds);
        figures[Figure::removes] = static_cast<double>(removes);
        figures[Figure::turnover] =
            before.empty() ? 0.0 : static_cast<double>(adds + removes) / static_cast<double>(before.size());
        figures[Figure::jaccard_previous] = jaccard(before, set);
    }
    figures[Figure::jaccard_independent] = jaccard(reference, set);
    figures[Figure::growth] =
        reference.empty() ? 1.0 : static_cast<double>(set.size()) / static_cast<double>(reference.size());
    figures[Figure::missed] = static_cast<double>(missing_from(set, reference));
    figures[Figure::uncovered] =
        covers_all(method) ? 0.0 : static_cast<double>(uncovered_tokens(rows, set, options.cover, team));
    if (method != Method::random) {
        figures[Figure::gram_entries] = static_cast<double>(step.work.gram_entries);
    }
    figures[Figure::multiply_adds] = static_cast<double>(step.work.multiply_adds);
    figures[Figure::seconds] = seconds;
    return figures;
}

void Chain::add_layer(const TokenRows & rows) {
    for (size_t i = 0; i < method_count; i++) {
        const auto method = static_cast<Method>(i);
        State & own = states[i];
        if (!own.wanted) {
            continue;
        }
        const auto start = std::chrono::steady_clock::now();
        Step step = choose(method, rows);
        const double seconds = seconds_since(start);
        if (method == Method::threshold) {
            independent.push_back(step.cover.representatives);
        }
        own.series.layers.push_back(figures_of(method, rows, step, seconds));
        if (options.keep_sets) {
            own.series.sets.push_back(step.cover.representatives);
        }
        own.cover = std::move(step.cover);
    }
    layer++;
}

const Cover * Chain::cover(Method method) const {
    const State & own = state(method);
    return own.wanted && layer > 0 ? &own.cover : nullptr;
}

void Chain::set_copy_error(Method method, double error) {
    state(method).series.layers.back()[Figure::copy_error] = error;
}

std::vector<Series> Chain::take_series() {
    std::vector<Series> result;
    for (State & own : states) {
        if (own.wanted) {
            result.push_back(std::move(own.series));
        }
    }
    return result;
}

LayerSimilarity Chain::similarity() const {
    LayerSimilarity result{ source, options.cover.tau, {} };
    for (const auto & a : independent) {
        std::vector<double> row;
        row.reserve(independent.size());
        for (const auto & b : independent) {
            row.push_back(jaccard(a, b));
        }
        result.jaccard.push_back(std::move(row));
    }
    return result;
}

} // namespace cascade::analysis
