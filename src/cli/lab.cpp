#include "cli/lab.h"

#include "report/eval_json.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>

namespace cascade::cli {

namespace {

StreamOptions stream_options(const LabOptions & options) {
    StreamOptions stream;
    stream.batch = stream.outputs = std::min(options.block, options.context);
    stream.context = options.context;
    stream.threads = options.threads;
    return stream;
}

class Stopwatch {
  public:
    explicit Stopwatch(double & to) : seconds(to) {}
    ~Stopwatch() { seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); }
    Stopwatch(const Stopwatch &) = delete;
    Stopwatch & operator=(const Stopwatch &) = delete;

  private:
    double & seconds;
    std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

std::vector<const float *> rows_of(const ActivationStream & stream, int64_t count) {
    std::vector<const float *> rows;
    rows.reserve(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; i++) {
        rows.push_back(stream.logits(i));
    }
    return rows;
}

} // namespace

std::vector<std::string> labels_of(const LabOptions & options) {
    std::vector<std::string> labels;
    labels.reserve(options.methods.size() + 1);
    for (const MethodSpec & method : options.methods) {
        labels.push_back(method.label);
    }
    if (options.noise) {
        labels.emplace_back(report::noise_label);
    }
    return labels;
}

Lab::Lab(llama_model * model, const LabOptions & some_options)
    : options(some_options), of(model), team(options.threads),
      comparison(llama_vocab_n_tokens(llama_model_get_vocab(model)), team) {
    make_contexts_bare();
    StreamOptions stream = stream_options(options);
    dense = std::make_unique<ActivationStream>(model, stream);
    if (options.noise) {
        stream.flash = false;
        other_form = std::make_unique<ActivationStream>(model, stream);
        stream.flash = true;
    }
    const bool all_by_plugin = std::all_of(options.methods.begin(), options.methods.end(),
                                           [](const MethodSpec & method) { return method.by_plugin(); });
    if (!all_by_plugin) {
        stream.sequences = static_cast<int>(options.methods.size()) + 1; // the last one is the trunk
    }
    stream.key_type = options.key_type;
    stream.value_type = options.value_type;
    approximate = std::make_unique<ActivationStream>(model, stream);
    stream.sequences = 1;
    modes.resize(options.methods.size());
    for (size_t i = 0; i < modes.size(); i++) { // after all bare contexts
        if (options.methods[i].by_plugin()) {
            modes[i] = std::make_unique<PluginMode>(model, stream, options.methods[i]);
        }
    }
    for (const MethodSpec & method : options.methods) {
        if (method.wants_rows() && !approximate->has(method.source)) {
            throw std::runtime_error("method '" + method.label +
                                     "': this model's graph has no such rows in every layer; give another source=");
        }
    }
}

void Lab::start(evaluate::Window & window, evaluate::Answer * answer) {
    dense->forget_all();
    approximate->forget_all();
    if (other_form) {
        other_form->forget_all();
    }
    subjects.clear();
    window.methods.clear();
    window.dense_nll.clear();
    window.dense_seconds = 0.0;
    for (const MethodSpec & method : options.methods) {
        Subject subject;
        subject.run = std::make_unique<MethodRun>(method, approximate->layers(), options.window, options.seed);
        subject.sequence = static_cast<llama_seq_id>(subjects.size());
        subject.plugin = modes[subjects.size()].get();
        if (subject.plugin != nullptr) {
            subject.on_trunk = false;
            subject.plugin->start();
        }
        subjects.push_back(std::move(subject));
    }
    for (const std::string & label : labels_of(options)) {
        window.methods.push_back({ label, {}, {}, {}, 0.0 });
    }
    if (answer != nullptr) {
        answer->dense_tokens_right = 0;
        answer->tokens_right.assign(window.methods.size(), 0);
        answer->right.assign(window.methods.size(), 0);
    }
}

bool Lab::run(const Tokens & tokens, int64_t from, const Say & say, evaluate::Window & window,
              evaluate::Answer * answer) {
    start(window, answer);
    text = &tokens;
    const auto size = static_cast<int64_t>(tokens.size());
    for (int64_t first = 0; first < size; first += options.block) {
        const int64_t end = std::min(size, first + options.block);
        Scored scored;
        scored.from = std::max(from, first) - first;
        scored.count = std::max<int64_t>(0, std::min(end, size - 1) - std::max(from, first));
        for (int64_t i = 0; i < scored.count; i++) {
            scored.next.push_back(tokens[static_cast<size_t>(first + scored.from + i + 1)]);
        }
        if (!run_block(first, scored, say, window, answer)) {
            return false;
        }
    }
    finish(window);
    return true;
}

bool Lab::run_block(int64_t first, const Scored & scored, const Say & say, evaluate::Window & window,
                    evaluate::Answer * answer) {
    const int64_t count = std::min(options.block, static_cast<int64_t>(text->size()) - first);
    Pass pass;
    pass.tokens = std::span(*text).subspan(static_cast<size_t>(first), static_cast<size_t>(count));
    pass.first = first;
    if (scored.count > 0) {
        pass.outputs_from = scored.from;
    }
    say(first, "dense");
    {
        const Stopwatch watch(window.dense_seconds);
        if (!dense->run(pass, nullptr)) {
            return false;
        }
    }
    comparison.set_dense(rows_of(*dense, scored.count), scored.next, window.dense_nll);
    if (answer != nullptr) {
        const auto & right = comparison.dense_right();
        answer->dense_tokens_right += static_cast<int32_t>(std::count(right.begin(), right.end(), 1));
    }
    for (Subject & subject : subjects) { // before anybody goes on
        if (subject.on_trunk && leaves_trunk(subject, first)) {
            subject.on_trunk = false;
            if (first > 0) {
                approximate->copy_sequence(static_cast<llama_seq_id>(subjects.size()), subject.sequence);
            }
        }
    }
    if (!run_trunk(pass)) {
        return false;
    }
    for (size_t i = 0; i < subjects.size(); i++) {
        if (subjects[i].on_trunk) {
            compare(*approximate, scored, i, window, answer);
        }
    }
    for (size_t i = 0; i < subjects.size(); i++) {
        if (!subjects[i].on_trunk) {
            say(first, window.methods[i].label);
            const Stopwatch watch(window.methods[i].seconds);
            if (!run_subject(subjects[i], pass)) {
                return false;
            }
            compare(stream_of(subjects[i]), scored, i, window, answer);
        }
    }
    return !options.noise || run_noise(pass, scored, window, answer);
}

// A method reads everything as long as all of the text stands in its window.
bool Lab::leaves_trunk(const Subject & subject, int64_t first) const {
    const MethodSpec & method = subject.run->spec();
    if (method.leaves_alone()) {
        return false;
    }
    return method.select == nullptr || first > (method.window >= 0 ? method.window : options.window);
}

ActivationListener Lab::listener_of(std::vector<MethodRun *> runs, int64_t first) {
    ActivationListener listener;
    listener.sources.clear();
    for (const MethodRun * run : runs) {
        if (run->spec().wants_rows()) {
            listener.sources.push_back(run->spec().source);
        }
    }
    listener.on_rows = [runs](int layer, Source source, const TokenRows & rows, int64_t) {
        for (MethodRun * run : runs) {
            if (run->spec().wants_rows() && run->spec().source == source) {
                run->add_rows(layer, rows);
            }
        }
    };
    // The engine's own output is only computed where the difference to it is measured: in a text's last block.
    const bool measured = first + options.block >= static_cast<int64_t>(text->size());
    listener.on_attention = [this, runs, first, measured](int layer, const Attention & attention) {
        for (MethodRun * run : runs) {
            run->attend(layer, first, attention, measured, team);
        }
    };
    if (!measured && runs.size() == 1) {
        listener.replaces = [run = runs.front(), first](int layer, const Attention & attention) {
            return run->replaces(layer, first, attention);
        };
    }
    return listener;
}

bool Lab::run_trunk(const Pass & pass) {
    std::vector<MethodRun *> runs;
    for (const Subject & subject : subjects) {
        if (subject.on_trunk) {
            runs.push_back(subject.run.get());
        }
    }
    if (runs.empty()) {
        return true;
    }
    Pass own = pass;
    own.sequence = static_cast<llama_seq_id>(subjects.size());
    const ActivationListener listener = listener_of(std::move(runs), pass.first);
    return approximate->run(own, &listener);
}

const ActivationStream & Lab::stream_of(const Subject & subject) const {
    return subject.plugin != nullptr ? subject.plugin->stream() : *approximate;
}

bool Lab::run_subject(Subject & subject, const Pass & pass) {
    if (subject.plugin != nullptr) {
        return subject.plugin->stream().run(pass, nullptr);
    }
    Pass own = pass;
    own.sequence = subject.sequence;
    const ActivationListener listener = listener_of({ subject.run.get() }, pass.first);
    return approximate->run(own, &listener);
}

bool Lab::run_noise(const Pass & pass, const Scored & scored, evaluate::Window & window, evaluate::Answer * answer) {
    const Stopwatch watch(window.methods.back().seconds);
    if (!other_form->run(pass, nullptr)) {
        return false;
    }
    compare(*other_form, scored, window.methods.size() - 1, window, answer);
    return true;
}

void Lab::compare(const ActivationStream & stream, const Scored & scored, size_t method, evaluate::Window & window,
                  evaluate::Answer * answer) {
    comparison.compare(rows_of(stream, scored.count), window.methods[method].scores);
    if (answer != nullptr) {
        const auto & right = comparison.right();
        answer->tokens_right[method] += static_cast<int32_t>(std::count(right.begin(), right.end(), 1));
    }
}

void Lab::finish(evaluate::Window & window) {
    for (size_t i = 0; i < subjects.size(); i++) {
        const PluginMode * plugin = subjects[i].plugin;
        window.methods[i].reads = plugin != nullptr ? plugin->reads() : subjects[i].run->reads();
        if (plugin != nullptr && !options.methods[i].sidecar.empty() && !plugin->uses_sidecar()) {
            throw std::runtime_error("the plugin does not take the sidecar of '" + options.methods[i].label + "'");
        }
        window.methods[i].layers = subjects[i].run->layers();
    }
}

} // namespace cascade::cli
