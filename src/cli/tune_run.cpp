#include "cli/tune_run.h"

#include "cli/engine.h"
#include "cli/f32_model.h"
#include "cli/fingerprints.h"
#include "cli/interrupt.h"
#include "cli/plugin.h"
#include "cli/tune_lab.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <stdexcept>

namespace cascade::cli {

namespace {

using evaluate::FactorSearch;
using evaluate::MethodSummary;

// Candidates measured side by side: the dense pass is shared, and each has a context of its own.
constexpr size_t at_once = 4;
constexpr int64_t most_probe_windows = 1; // a layer's cost is needed roughly: its cube root counts

float default_epsilon(Mode mode) {
    Settings settings;
    settings.mode = mode;
    return settings.gate();
}

// One kind of epsilons under one promise: their common factor is searched.
struct Search {
    ModeResult * of;
    std::optional<Found> ModeResult::* to;
    std::string kind;
    std::vector<double> relative;
    FactorSearch factors;

    Candidate candidate(double factor) const {
        Candidate result;
        result.mode = of->wanted.mode;
        result.label = fmt::format("{} {} {:.9g}", mode_name(result.mode), kind, factor);
        for (const double one : relative) {
            result.epsilons.push_back(static_cast<float>(std::min(1.0, factor * one)));
        }
        return result;
    }

    void tell(double factor, const Candidate & tried, const MethodSummary & measured) {
        const double over = excess(of->wanted.budget, measured.kl_interval.high, measured.top1_interval.low);
        const double best = factors.best().value_or(0.0);
        factors.tell(factor, over);
        if (over <= 0.0 && factor > best) {
            of->*to = Found{ tried.epsilons, measured };
        }
    }
};

class Run {
  public:
    explicit Run(const TuneOptions & some_options)
        : options(some_options), fingerprints(fingerprints_of(options.model)),
          model(options.f32 ? load_in_f32(options.model, options.threads) : load_model(options.model, true)),
          lab(model.get(),
              { options.model, options.text, options.length, options.threads, options.f32, options.resume },
              fingerprints) {}

    TuneResult all();

  private:
    bool probe_layers(TuneResult & result);
    Candidate probe_of(const LayerProbe & probe, double epsilon) const;
    void weigh_layers(TuneResult & result) const;
    bool search(TuneResult & result);
    static void choose(ModeResult & mode);

    const TuneOptions & options;
    std::vector<uint64_t> fingerprints;
    llama_model_ptr model;
    TuneLab lab;
};

Candidate Run::probe_of(const LayerProbe & probe, double epsilon) const {
    Candidate candidate;
    candidate.mode = Mode::near; // which one makes no difference: the sidecar says all
    candidate.label = fmt::format("layers {} to {} at {:.6g}", probe.first, probe.last, epsilon);
    candidate.epsilons.assign(fingerprints.size(), 0.0F);
    for (int layer = probe.first; layer <= probe.last; layer++) {
        candidate.epsilons[static_cast<size_t>(layer)] = static_cast<float>(epsilon);
    }
    return candidate;
}

bool Run::probe_layers(TuneResult & result) {
    const auto layers = static_cast<int64_t>(fingerprints.size());
    const int64_t groups = std::min(options.groups, layers);
    for (int64_t group = 0; group < groups; group++) {
        LayerProbe probe;
        probe.first = static_cast<int>(group * layers / groups);
        probe.last = static_cast<int>(((group + 1) * layers / groups) - 1);
        result.probes.push_back(std::move(probe));
    }
    for (size_t first = 0; first < result.probes.size(); first += at_once) {
        const size_t end = std::min(first + at_once, result.probes.size());
        std::vector<Candidate> candidates;
        for (size_t i = first; i < end; i++) {
            candidates.push_back(probe_of(result.probes[i], result.probe_epsilon));
        }
        lab.say(fmt::format("probe {} of {}", first + 1, result.probes.size()));
        auto measured = lab.measure(candidates, result.probe_windows);
        if (measured.empty()) {
            return false;
        }
        for (size_t i = first; i < end; i++) {
            result.probes[i].measured = std::move(measured[i - first]);
        }
    }
    return true;
}

void Run::weigh_layers(TuneResult & result) const {
    std::vector<evaluate::LayerCost> costs(fingerprints.size());
    bool any = false;
    for (const LayerProbe & probe : result.probes) {
        const bool approximated = probe.measured.share > 0.0; // not where it was not measured
        any = any || approximated;
        for (int layer = probe.first; layer <= probe.last; layer++) {
            costs[static_cast<size_t>(layer)] = { probe.measured.kl, approximated ? probe.measured.share : 0.0 };
        }
    }
    if (!any) {
        throw std::runtime_error(
            fmt::format("nothing to tune: with {} tokens every attention of this model stays exact; give a longer -c",
                        options.length));
    }
    result.relative = evaluate::relative_epsilons(costs);
}

bool Run::search(TuneResult & result) {
    std::vector<Search> searches;
    for (ModeResult & mode : result.modes) {
        const FactorSearch factors(default_epsilon(mode.wanted.mode), 1.0);
        const std::vector<double> alike(result.relative.size(), 1.0);
        searches.push_back({ &mode, &ModeResult::by_layer, "by layer", result.relative, factors });
        searches.push_back({ &mode, &ModeResult::uniform, "uniform", alike, factors });
    }
    for (int round = 1;; round++) {
        std::vector<Candidate> candidates;
        std::vector<std::pair<Search *, double>> asked;
        for (Search & one : searches) {
            if (const auto factor = one.factors.next()) {
                candidates.push_back(one.candidate(*factor));
                asked.emplace_back(&one, *factor);
            }
        }
        if (candidates.empty()) {
            return true;
        }
        lab.say(fmt::format("search, step {}", round));
        const auto measured = lab.measure(candidates, result.windows);
        if (measured.empty()) {
            return false;
        }
        for (size_t i = 0; i < asked.size(); i++) {
            asked[i].first->tell(asked[i].second, candidates[i], measured[i]);
        }
    }
}

void Run::choose(ModeResult & mode) {
    mode.layers_pay =
        mode.by_layer && (!mode.uniform || mode.by_layer->measured.bytes_share < mode.uniform->measured.bytes_share);
}

TuneResult Run::all() {
    TuneResult result;
    result.architecture = metadata(model.get(), "general.architecture");
    result.weights = description_of(model.get());
    result.fingerprints = fingerprints;
    result.windows = lab.windows(options.windows);
    result.probe_windows = std::min(result.windows, most_probe_windows);
    result.probe_epsilon = default_epsilon(Mode::balanced);
    for (const TunedMode & mode : options.modes) {
        result.modes.push_back({ mode, {}, {}, false });
    }
    if (result.windows < options.windows) {
        fmt::print(stderr, "cascade: the text has {} windows of {} tokens, not {}\n", result.windows, options.length,
                   options.windows);
    }
    if (probe_layers(result)) {
        weigh_layers(result);
        result.complete = search(result);
        std::for_each(result.modes.begin(), result.modes.end(), choose);
    }
    result.measured = lab.measured();
    result.kept_in = lab.kept_in();
    return result;
}

} // namespace

TuneResult tune(const TuneOptions & options) {
    find_plugin(); // before the engine does
    unsetenv("GGML_CASCADE_EPS");
    unsetenv("GGML_CASCADE_SIDECAR");
    setenv("GGML_CASCADE_WAY", "joint", 1); // what is judged is the approximation, not where this machine uses it
    stop_on_interrupt();
    return Run(options).all(); // looking at the model's graph starts the engine
}

} // namespace cascade::cli
