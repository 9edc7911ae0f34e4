#include "cli/analyze_run.h"

#include "analysis/chain.h"
#include "analysis/copy_error.h"
#include "cli/engine.h"
#include "cli/finished_windows.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/text_windows.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <iterator>
#include <memory>
#include <stdexcept>

namespace cascade::cli {

namespace {

using analysis::Chain;
using analysis::Window;

// A page shows the text of one window; more than this is no reading.
constexpr int64_t longest_shown = 2048;

// All chains of one window: one for each source, tau and, by head, each head.
class WindowAnalysis {
  public:
    WindowAnalysis(const AnalyzeOptions & some_options, int64_t window_index, bool shown, Team & a_team)
        : options(some_options), index(window_index), keep_sets(shown), team(a_team) {}

    void add_rows(Source source, const TokenRows & rows, int64_t heads) {
        const bool split = options.per_head && heads > 1;
        const int64_t parts = split ? heads : 1;
        for (int64_t part = 0; part < parts; part++) {
            const std::string name = source_name(source) + (split ? fmt::format("/{}", part) : "");
            for (Entry & entry : chains_of(name, split)) {
                entry.chain->add_layer(rows.head(part, parts));
            }
        }
    }

    // A cover of one head says nothing about copying all of them.
    void add_attention(const Attention & attention, int64_t tokens) {
        const auto sample = analysis::spread_sample(tokens, options.copy_samples);
        for (auto & [name, entries] : chains) {
            for (Entry & entry : entries) {
                for (size_t i = 0; i < analysis::method_count && !entry.one_head; i++) {
                    const auto method = static_cast<analysis::Method>(i);
                    if (const Cover * cover = entry.chain->cover(method)) {
                        entry.chain->set_copy_error(method, analysis::copy_error(attention, *cover, sample, team));
                    }
                }
            }
        }
    }

    void finish(Window & window) {
        for (auto & [name, entries] : chains) {
            for (Entry & entry : entries) {
                window.similarity.push_back(entry.chain->similarity());
                auto series = entry.chain->take_series();
                std::move(series.begin(), series.end(), std::back_inserter(window.series));
            }
        }
    }

  private:
    struct Entry {
        std::unique_ptr<Chain> chain;
        bool one_head;
    };

    std::vector<Entry> & chains_of(const std::string & name, bool one_head) {
        for (auto & [known, entries] : chains) {
            if (known == name) {
                return entries;
            }
        }
        std::vector<Entry> entries;
        for (const double tau : options.taus) {
            const uint64_t seed = options.seed + (static_cast<uint64_t>(index) << 20U);
            const analysis::ChainOptions chain = { { tau, options.sign }, options.methods, seed, keep_sets };
            entries.push_back({ std::make_unique<Chain>(name, chain, team), one_head });
        }
        chains.emplace_back(name, std::move(entries));
        return chains.back().second;
    }

    const AnalyzeOptions & options;
    int64_t index;
    bool keep_sets;
    Team & team;
    std::vector<std::pair<std::string, std::vector<Entry>>> chains; // in the order of their first layer
};

class Run {
  public:
    explicit Run(const AnalyzeOptions & some_options)
        : options(some_options), team(options.threads), model(load_model(options.model, true)),
          text(model.get(), options.text), finished(options) {}

    Analyzed all();

  private:
    void run_length(int64_t length, Analyzed & result);
    bool run_window(ActivationStream & stream, int64_t index, bool first_length, Window & window);
    void check_sources(const ActivationStream & stream) const;

    const AnalyzeOptions & options;
    Team team;
    llama_model_ptr model;
    TextWindows text;
    FinishedWindows finished;
    Progress progress;
};

void Run::check_sources(const ActivationStream & stream) const {
    for (const Source source : options.sources) {
        if (!stream.has(source)) {
            throw std::runtime_error(
                fmt::format("this model's graph has no recognised {} in every layer: leave it out of --source",
                            source_name(source)));
        }
    }
}

bool Run::run_window(ActivationStream & stream, int64_t index, bool first_length, Window & window) {
    const Tokens tokens = text.window(window.tokens, index);
    const bool shown = first_length && index == 0 && window.tokens <= longest_shown;
    if (options.timing && index == 0) {
        stream.run_bare(tokens); // the first pass also pays for fresh memory
        window.bare_seconds = stream.run_bare(tokens);
    }
    const auto start = std::chrono::steady_clock::now();
    WindowAnalysis analysis(options, index, shown, team);
    ActivationListener listener;
    listener.sources = options.sources;
    listener.on_rows = [&](int layer, Source source, const TokenRows & rows, int64_t heads) {
        progress.show(
            fmt::format("T {}, window {}, layer {} of {}", window.tokens, index + 1, layer + 1, stream.layers()));
        analysis.add_rows(source, rows, heads);
    };
    if (options.copy_samples > 0) {
        listener.on_attention = [&](int, const Attention & attention) {
            analysis.add_attention(attention, window.tokens);
        };
    }
    if (!stream.run(tokens, listener)) {
        return false;
    }
    window.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    analysis.finish(window);
    for (size_t i = 0; shown && i < tokens.size(); i++) {
        window.pieces.push_back(piece(model.get(), tokens[i]));
    }
    return true;
}

void Run::run_length(int64_t length, Analyzed & result) {
    std::unique_ptr<ActivationStream> stream; // only where something is left to do
    for (int64_t index = 0; index < text.count(length, options.windows) && !interrupted(); index++) {
        if (const Window * known = finished.find(length, index)) {
            result.windows.push_back(*known);
            continue;
        }
        if (!stream) {
            stream = std::make_unique<ActivationStream>(model.get(), length, options.threads);
            check_sources(*stream);
        }
        Window window;
        window.tokens = length;
        window.index = index;
        if (run_window(*stream, index, length == options.lengths.front(), window)) {
            finished.add(window);
            result.windows.push_back(std::move(window));
        }
    }
}

Analyzed Run::all() {
    Analyzed result;
    result.architecture = metadata(model.get(), "general.architecture");
    result.layers = llama_model_n_layer(model.get());
    for (const int64_t length : options.lengths) {
        const int64_t windows = text.count(length, options.windows);
        result.wanted += windows;
        if (windows < options.windows) {
            fmt::print(stderr, "cascade: the text has {} windows of {} tokens, not {}\n", windows, length,
                       options.windows);
        }
    }
    for (const int64_t length : options.lengths) {
        run_length(length, result);
    }
    progress.clear();
    result.kept_in = finished.path();
    return result;
}

} // namespace

const char * source_name(Source source) {
    switch (source) {
    case Source::residual:
        return "residual";
    case Source::normalised:
        return "normalised";
    case Source::key:
        return "key";
    default:
        return "value";
    }
}

Analyzed analyze(const AnalyzeOptions & options) {
    start_engine();
    stop_on_interrupt();
    return Run(options).all();
}

} // namespace cascade::cli
