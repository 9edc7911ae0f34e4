#include "cli/calibrate_run.h"

#include "cli/calibration_images.h"
#include "cli/engine.h"
#include "cli/f32_model.h"
#include "cli/fingerprints.h"
#include "cli/interrupt.h"
#include "cli/kept_calibration.h"
#include "cli/model_weights.h"
#include "cli/progress.h"
#include "cli/resume_file.h"
#include "cli/text_windows.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdexcept>

namespace cascade::cli {

namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

constexpr double least_between_saves = 2.0; // seconds
constexpr double most_of_time_saving = 0.05;
constexpr int64_t widest_side_by_side = 4096;

std::string moment_settings(const CalibrateOptions & options) {
    return fmt::format("{}\n{}\n{} {} {} {}", file_identity(options.model), file_identity(options.text), options.tokens,
                       options.length, options.threads, fmt::join(options.inputs, ","));
}

std::string basis_settings(const CalibrateOptions & options) {
    return fmt::format("{} {} {} {} {} {}", options.k, options.energy, options.memory, ggml_blck_size(options.type),
                       options.for_output, options.gate_output);
}

class Run {
  public:
    explicit Run(const CalibrateOptions & some_options)
        : options(some_options), fingerprints(fingerprints_of(options.model)), model(load_model(options.model, true)),
          text(model.get(), options.text), stream(model.get(), options.length, options.threads, options.inputs),
          team(options.threads), weights(model.get(), options.model),
          kept(moment_settings(options), basis_settings(options), options.resume) {
        choose_windows();
        choose_groups();
    }

    CalibrateResult all();

  private:
    void choose_windows();
    void choose_groups();
    bool add_moments(int64_t group);
    bool pass(int64_t index, const std::vector<bool> & wanted, bool counts);
    void save_moments(int64_t group, bool whatever_it_costs);
    bool solve(int64_t group);
    std::vector<KeptBasis> solved(const std::vector<size_t> & some);
    KeptBasis solved(size_t input, const subspace::SecondMoments & seen, Team & with) const;
    subspace::SecondMoments moments_of_weights(size_t input);
    bool looks_at_output() const { return options.for_output || options.gate_output; }
    void save_with_inheritance(size_t input, KeptBasis & found);
    int64_t solved_at_once(int64_t width) const;
    size_t layer_below(size_t input) const;
    bool measure_held_out();
    bool write();
    std::string where(int64_t group) const;

    subspace::BasisOptions basis_options() const;
    int64_t passes_in_window() const { return (options.length + stream.batch() - 1) / stream.batch(); }

    const CalibrateOptions & options;
    std::vector<uint64_t> fingerprints;
    llama_model_ptr model;
    TextWindows text;
    LinearInputs stream;
    Team team;
    ModelWeights weights;
    KeptCalibration kept;
    Progress progress;
    CalibrateResult result;
    bool has_held_out = false;
    std::vector<std::vector<size_t>> groups; // inputs whose moments are in memory together
    std::vector<subspace::SecondMoments> moments;
    std::vector<size_t> place; // of an input among them
    subspace::PackedRun scratch;
    Tokens window;
    int64_t window_index = -1;
    MomentsSoFar so_far;
    Clock::time_point last_saved = Clock::now();
    double saving_took = 0.0;
};

void Run::choose_windows() {
    const int64_t wanted = (options.tokens + options.length - 1) / options.length;
    const int64_t available = text.count(options.length, wanted + 1);
    has_held_out = available > 1;
    result.windows = std::min(wanted, std::max<int64_t>(1, available - 1));
    result.tokens = result.windows * options.length;
    if (result.windows < wanted) {
        fmt::print(stderr, "cascade: the text has {} windows of {} tokens to calibrate on, not {}\n", result.windows,
                   options.length, wanted);
    }
}

// Inputs in order, as many as the memory takes beside what the widest one's eigenproblem needs.
void Run::choose_groups() {
    const auto bytes = static_cast<size_t>(options.memory * static_cast<double>(1U << 30U));
    const auto & inputs = stream.all();
    place.assign(inputs.size(), 0);
    size_t used = 0;
    size_t solving = 0;
    for (size_t i = 0; i < inputs.size(); i++) {
        const size_t own = subspace::SecondMoments::bytes(inputs[i].width);
        const auto side = static_cast<size_t>(inputs[i].width);
        const size_t for_output = looks_at_output() ? own + (side * side * (sizeof(double) + (4 * sizeof(float)))) : 0;
        const size_t solve_own = (subspace::basis_bytes(inputs[i].width, basis_options()) + for_output) *
                                 static_cast<size_t>(solved_at_once(inputs[i].width));
        if (own + solve_own > bytes) {
            throw std::runtime_error(fmt::format("inputs of {} values need {:.1f} GiB: give --memory", inputs[i].width,
                                                 static_cast<double>(own + solve_own) / (1U << 30U)));
        }
        solving = std::max(solving, solve_own);
        if (groups.empty() || used + own + solving > bytes) {
            groups.emplace_back();
            used = 0;
            solving = solve_own;
        }
        place[i] = groups.back().size();
        groups.back().push_back(i);
        used += own;
    }
    result.passes_over_text = static_cast<int64_t>(groups.size());
}

std::string Run::where(int64_t group) const {
    return groups.size() > 1 ? fmt::format("part {} of {}, ", group + 1, groups.size()) : "";
}

// One batch of tokens; where it doesn't count, it is only for what later ones see of it.
bool Run::pass(int64_t index, const std::vector<bool> & wanted, bool counts) {
    const int64_t of = index / passes_in_window();
    const int64_t first = index % passes_in_window() * stream.batch();
    if (window_index != of) {
        window = text.window(options.length, of);
        window_index = of;
    }
    double adding = 0.0;
    const auto start = Clock::now();
    const int64_t count = std::min(stream.batch(), options.length - first);
    const bool done = stream.run(std::span(window).subspan(static_cast<size_t>(first), static_cast<size_t>(count)),
                                 first, wanted, [&](size_t input, const subspace::MatrixView & rows) {
                                     if (counts) {
                                         const auto begin = Clock::now();
                                         moments[place[input]].add(rows, scratch, team);
                                         adding += since(begin);
                                     }
                                 });
    so_far.prefill_seconds += since(start) - adding;
    so_far.moments_seconds += adding;
    return done;
}

void Run::save_moments(int64_t group, bool whatever_it_costs) {
    const double pause = std::max(least_between_saves, saving_took / most_of_time_saving);
    if (whatever_it_costs || since(last_saved) > pause) {
        const auto start = Clock::now();
        so_far.first_input = static_cast<int64_t>(groups[static_cast<size_t>(group)].front());
        kept.save(so_far, moments);
        saving_took = since(start);
        last_saved = Clock::now();
    }
}

bool Run::add_moments(int64_t group) {
    const auto & members = groups[static_cast<size_t>(group)];
    std::vector<bool> wanted(stream.all().size(), false);
    moments.clear();
    moments.reserve(members.size());
    for (const size_t input : members) {
        wanted[input] = true;
        moments.emplace_back(stream.all()[input].width);
    }
    so_far = kept.load(static_cast<int64_t>(members.front()), moments).value_or(MomentsSoFar());
    last_saved = Clock::now();
    const int64_t all = result.windows * passes_in_window();
    const int64_t begin = so_far.passes;
    for (int64_t i = begin / passes_in_window() * passes_in_window(); i < all; i++) {
        progress.show(fmt::format("{}tokens {} of {}", where(group), i * stream.batch(), result.tokens));
        const bool counts = i >= begin;
        if (!pass(i, wanted, counts)) {
            if (so_far.passes > begin) {
                save_moments(group, true);
            }
            result.passes_done = so_far.passes;
            return false;
        }
        if (counts) {
            so_far.passes = i + 1;
            save_moments(group, i + 1 == all);
        }
    }
    result.seconds.prefill += so_far.prefill_seconds;
    result.seconds.moments += so_far.moments_seconds;
    return true;
}

subspace::BasisOptions Run::basis_options() const {
    subspace::BasisOptions wanted;
    wanted.vectors = options.k;
    wanted.energy = options.energy;
    wanted.multiple_of = ggml_blck_size(options.type);
    return wanted;
}

// The same kind's input in the layer before; itself: there is none.
size_t Run::layer_below(size_t input) const {
    const auto & inputs = stream.all();
    for (size_t i = input; i-- > 0;) {
        if (inputs[i].kind == inputs[input].kind && inputs[i].width == inputs[input].width) {
            return i;
        }
    }
    return input;
}

// Narrow inputs side by side, each on one thread: much of their work is the library's, which uses no more.
int64_t Run::solved_at_once(int64_t width) const { return width <= widest_side_by_side ? options.threads : 1; }

subspace::SecondMoments Run::moments_of_weights(size_t input) {
    const SharedInput & shared = stream.all()[input];
    subspace::SecondMoments seen(shared.width);
    for (const std::string & weight : shared.weights) {
        weights.each(weight, [&](const subspace::MatrixView & rows) {
            seen.add(rows, scratch, team);
            return true;
        });
    }
    return seen;
}

KeptBasis Run::solved(size_t input, const subspace::SecondMoments & seen, Team & with) const {
    const subspace::SecondMoments & own = moments[place[input]];
    KeptBasis found;
    found.loss.share = -1.0;
    if (options.for_output) {
        found.basis = subspace::output_basis(own, seen, basis_options(), with);
        found.guess = subspace::best_guess(found.basis, own, with);
    } else {
        found.basis = subspace::leading_basis(own, basis_options(), with);
    }
    if (looks_at_output()) {
        found.loss = subspace::output_loss(found.basis, found.guess_view(), own, seen, with);
    }
    return found;
}

std::vector<KeptBasis> Run::solved(const std::vector<size_t> & some) {
    std::vector<KeptBasis> found(some.size());
    std::vector<subspace::SecondMoments> seen;
    seen.reserve(some.size());
    for (const size_t input : some) { // one file, read by one thread
        seen.push_back(looks_at_output() ? moments_of_weights(input) : subspace::SecondMoments(1));
    }
    const auto solve_one = [&](int64_t i, Team & with) {
        const auto at = static_cast<size_t>(i);
        found[at] = solved(some[at], seen[at], with);
    };
    if (some.size() == 1) {
        solve_one(0, team);
    } else {
        team.run(static_cast<int64_t>(some.size()), [&](int64_t i) {
            Team alone(1);
            solve_one(i, alone);
        });
    }
    return found;
}

void Run::save_with_inheritance(size_t input, KeptBasis & found) {
    found.inherited.energy = -1.0;
    const size_t below = layer_below(input);
    if (const auto other = below != input ? kept.load(below) : std::nullopt) {
        found.inherited = subspace::inherit(other->basis, moments[place[input]], found.basis, inherit_tolerance, team);
    }
    kept.save(input, found);
}

bool Run::solve(int64_t group) {
    const auto start = Clock::now();
    const auto & members = groups[static_cast<size_t>(group)];
    for (size_t i = 0; i < members.size();) {
        progress.show(fmt::format("{}directions of {} ({} of {})", where(group), stream.all()[members[i]].name, i + 1,
                                  members.size()));
        if (interrupted()) {
            return false;
        }
        std::vector<size_t> some;
        int64_t room = solved_at_once(stream.all()[members[i]].width);
        for (; i < members.size() && std::ssize(some) < room; i++) {
            if (!kept.has(members[i])) {
                room = std::min(room, solved_at_once(stream.all()[members[i]].width));
                some.push_back(members[i]);
            }
        }
        std::vector<KeptBasis> found = solved(some);
        for (size_t j = 0; j < some.size(); j++) {
            save_with_inheritance(some[j], found[j]);
        }
    }
    result.seconds.eigenproblems += since(start);
    return true;
}

bool Run::measure_held_out() {
    const auto start = Clock::now();
    for (size_t i = 0; i < stream.all().size(); i++) {
        const auto found = kept.load(i);
        if (!found) {
            throw std::runtime_error("what was kept of this run is damaged: run without --resume");
        }
        CalibratedInput & input = result.inputs.emplace_back();
        input.input = stream.all()[i];
        input.k = found->basis.count();
        input.by_blocks = found->basis.by_blocks;
        input.inherited_energy = found->inherited.energy;
        input.updates = found->inherited.updates;
        input.output_lost = found->loss.share;
        input.gain = options.gate_output ? found->loss.gain : 1.0;
        input.values.reserve(found->basis.values.size());
        for (int64_t k = 1; k <= static_cast<int64_t>(found->basis.values.size()); k++) {
            input.values.push_back(found->basis.energy(k));
        }
    }
    if (!has_held_out) {
        return true;
    }
    window = text.window(options.length, result.windows);
    const std::vector<bool> wanted(stream.all().size(), true);
    double bare = 0.0;
    for (int64_t first = 0; first < options.length; first += stream.batch()) {
        progress.show(fmt::format("held-out tokens {} of {}", first, options.length));
        const auto some = std::span(window).subspan(
            static_cast<size_t>(first), static_cast<size_t>(std::min(stream.batch(), options.length - first)));
        const bool done = stream.run(some, first, wanted, [&](size_t input, const subspace::MatrixView & rows) {
            const auto found = kept.load(input);
            const auto outside = subspace::residuals(found.value().basis.view(), rows, team);
            auto & all = result.inputs[input].held_out;
            all.insert(all.end(), outside.begin(), outside.end());
            result.inputs[input].inherited_gates.add(rows, outside, team);
        });
        if (!done) {
            return false;
        }
    }
    for (int64_t first = 0; first < options.length; first += stream.batch()) {
        const double seconds = stream.run_bare(
            std::span(window).subspan(static_cast<size_t>(first),
                                      static_cast<size_t>(std::min(stream.batch(), options.length - first))),
            first);
        if (seconds < 0.0) {
            return false;
        }
        bare += seconds;
    }
    result.seconds.bare_prefill = bare * static_cast<double>(result.windows);
    result.seconds.held_out = since(start) - bare;
    return true;
}

bool Run::write() {
    const auto start = Clock::now();
    CalibrationImages images(options, result, fingerprints, weights);
    const bool done = images.write([&](size_t i) { return kept.load(i).value(); }, team, progress);
    result.seconds.images = since(start);
    if (done) {
        result.sidecar_bytes = std::filesystem::file_size(options.sidecar);
    }
    return done;
}

CalibrateResult Run::all() {
    result.architecture = metadata(model.get(), "general.architecture");
    result.weights = description_of(model.get());
    result.date = kept.date();
    for (int64_t group = 0; group < static_cast<int64_t>(groups.size()); group++) {
        const auto & members = groups[static_cast<size_t>(group)];
        if (std::all_of(members.begin(), members.end(), [&](size_t input) { return kept.has(input); })) {
            continue;
        }
        if (!add_moments(group) || !solve(group)) {
            return std::move(result);
        }
    }
    moments.clear();
    if (measure_held_out() && write()) {
        result.complete = true;
        options.keep ? kept.forget_bases() : kept.forget();
    }
    return std::move(result);
}

} // namespace

CalibrateResult calibrate(const CalibrateOptions & options) {
    setenv("OMP_WAIT_POLICY", "passive", 0); // the engine's threads and ours take turns on the same cores
    stop_on_interrupt();
    return Run(options).all(); // looking at the model's graph starts the engine
}

} // namespace cascade::cli
