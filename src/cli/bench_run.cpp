#include "cli/bench_run.h"

#include "cascade/settings.h"
#include "cli/bench_context.h"
#include "cli/engine.h"
#include "cli/interrupt.h"
#include "cli/plugin.h"
#include "cli/progress.h"
#include "cli/weights.h"

#include "ggml-backend.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>

namespace cascade::cli {

namespace {

using report::BenchTest;
using Tokens = std::vector<llama_token>;
using ContextPointer = std::unique_ptr<BenchContext>;

// Enough to tell the settings of -fa apart where it matters; their own figures, so that the winner's luck stays here.
constexpr int rounds_to_choose = 3;

std::vector<BenchTest> tests_of(const BenchOptions & options) {
    std::vector<BenchTest> tests;
    const auto add = [&](int prompt, int generated, int depth) {
        BenchTest test;
        test.n_prompt = prompt;
        test.n_gen = generated;
        test.n_depth = depth;
        if (test.tokens() > 0) {
            tests.push_back(std::move(test));
        }
    };
    for (const int depth : options.depths) {
        for (const int prompt : options.prompts) {
            add(prompt, 0, depth);
        }
        for (const int generated : options.generated) {
            add(0, generated, depth);
        }
        for (const auto & [prompt, generated] : options.both) {
            add(prompt, generated, depth);
        }
    }
    if (tests.empty()) {
        throw std::runtime_error("nothing to measure: give tokens with -p, -n or -pg");
    }
    return tests;
}

// The turns of a test: what the engine computes at once, then token by token.
std::vector<int64_t> turns_of(const BenchOptions & options, const BenchTest & test) {
    std::vector<int64_t> turns;
    const int most = std::min(options.batch, options.ubatch);
    for (int done = 0; done < test.n_prompt; done += most) {
        turns.push_back(std::min(most, test.n_prompt - done));
    }
    turns.insert(turns.end(), static_cast<size_t>(test.n_gen), 1);
    return turns;
}

Tokens tokens_for(const BenchOptions & options, const llama_model * model, int64_t count) {
    const llama_vocab * vocab = llama_model_get_vocab(model);
    Tokens tokens;
    if (options.text.empty()) {
        std::mt19937 random(1);
        std::uniform_int_distribution<llama_token> any(0, llama_vocab_n_tokens(vocab) - 1);
        tokens.resize(static_cast<size_t>(count));
        std::generate(tokens.begin(), tokens.end(), [&] { return any(random); });
    } else {
        tokens = tokenise(model, read_text(options.text));
        if (tokens.size() < static_cast<size_t>(count)) {
            throw std::runtime_error(fmt::format("the text '{}' has {} tokens, the longest test {}: give a longer one "
                                                 "with -f, or smaller -p, -n and -d",
                                                 options.text, tokens.size(), count));
        }
    }
    if (llama_vocab_get_add_bos(vocab)) {
        tokens.front() = llama_vocab_bos(vocab);
    }
    return tokens;
}

// As llama-bench lists them.
report::BenchSide side_now() {
    report::BenchSide side;
    const auto append = [](std::string & list, const char * word, const char * between) {
        list += (list.empty() ? "" : between) + std::string(word);
    };
    for (size_t i = 0; i < ggml_backend_reg_count(); i++) {
        const std::string name = ggml_backend_reg_name(ggml_backend_reg_get(i));
        if (name != "CPU" && name != "RPC") {
            append(side.backends, name.c_str(), ",");
        }
    }
    side.backends = side.backends.empty() ? "CPU" : side.backends;
    for (size_t i = 0; i < ggml_backend_dev_count(); i++) {
        ggml_backend_dev_t device = ggml_backend_dev_get(i);
        const auto type = ggml_backend_dev_type(device);
        if (type == GGML_BACKEND_DEVICE_TYPE_CPU || type == GGML_BACKEND_DEVICE_TYPE_ACCEL) {
            append(side.cpu_info, ggml_backend_dev_description(device), ", ");
        }
    }
    return side;
}

std::string time_now() { // RFC 3339
    const std::time_t now = std::time(nullptr);
    std::tm parts = {};
    gmtime_r(&now, &parts);
    std::array<char, 32> text = {};
    std::strftime(text.data(), text.size(), "%FT%TZ", &parts);
    return text.data();
}

// One round: every context does the same work from the same depth, turn by turn, and all orders take their turn, so
// that each context follows each other one equally often. `after_turn` is called with the turn's first context.
template <size_t count, typename AfterTurn>
std::array<double, count> one_round(const std::array<BenchContext *, count> & contexts, int64_t depth,
                                    const std::vector<int64_t> & turns, int round, const AfterTurn & after_turn) {
    std::array<double, count> seconds = {};
    std::array<size_t, count> order = {};
    std::iota(order.begin(), order.end(), size_t{ 0 });
    for (int i = 0; i < round; i++) {
        std::next_permutation(order.begin(), order.end());
    }
    for (BenchContext * context : contexts) {
        context->go_to(depth);
    }
    for (const int64_t tokens : turns) {
        for (const size_t which : order) {
            seconds[which] += contexts[which]->turn(tokens);
        }
        after_turn(*contexts[0]);
        std::next_permutation(order.begin(), order.end());
    }
    return seconds;
}

class Run {
  public:
    explicit Run(const BenchOptions & some_options)
        : options(some_options), plugin_path(find_plugin()), tests(tests_of(options)) {
        start_engine();
        stop_on_interrupt();
        model = load_model(options.model, true);
        shape = { 0, options.batch, options.ubatch, options.threads, options.type_k, options.type_v };
        for (const BenchTest & test : tests) {
            shape.tokens = std::max<int64_t>(shape.tokens, test.n_depth + test.tokens());
        }
        text = tokens_for(options, model.get(), shape.tokens);
    }

    report::Bench measure() {
        report::Bench result;
        result.info.bare = side_now();
        result.wanted = tests.size();
        try {
            make_bare();
            choose_settings();
            make_controls();
            plugin = std::make_unique<Plugin>(plugin_path, options.mode); // contexts made from now on have it
            for (const auto & [setting, context] : bare) {
                const ContextPointer ours = make_context(our_setting(setting));
                for (BenchTest & test : tests) {
                    if (test.flash_attn == setting) {
                        measure(test, *context, *controls.at(setting), *ours);
                    }
                }
            }
            result.complete = true;
        } catch (const Stopped &) {
            std::erase_if(tests, [](const BenchTest & test) { return test.ours.empty(); });
        }
        describe(result.info);
        result.tests = tests;
        return result;
    }

  private:
    // Modes that compute attention do so in the flash form, whichever is the bare engine's better one.
    int our_setting(int setting) const {
        Settings settings;
        settings.mode = parse_mode(options.mode).value_or(Mode::exact);
        const bool may = std::find(options.flash_attn.begin(), options.flash_attn.end(), 1) != options.flash_attn.end();
        return settings.rewrites() && settings.mode != Mode::reference && may ? 1 : setting;
    }

    ContextPointer make_context(int setting) {
        ContextPointer context = BenchContext::make(model.get(), shape, setting, text);
        if (!context) {
            throw std::runtime_error(fmt::format("the engine makes no context of {} tokens with -fa {}, -ctk {} and "
                                                 "-ctv {}: try smaller -p, -n and -d, or other settings",
                                                 shape.tokens, setting, ggml_type_name(shape.type_k),
                                                 ggml_type_name(shape.type_v)));
        }
        return context;
    }

    void make_bare() {
        std::vector<int> settings = options.flash_attn;
        if (settings.size() > 1 && ggml_is_quantized(options.type_v)) {
            settings = { 1 }; // without flash attention the engine has no quantised values
        }
        for (const int setting : settings) {
            bare[setting] = make_context(setting);
        }
    }

    // The first phase: the bare engine's settings of -fa against each other.
    void choose_settings() {
        for (BenchTest & test : tests) {
            test.flash_attn = bare.begin()->first;
            if (bare.size() == 2) {
                choose_setting(test);
            }
        }
        std::erase_if(bare, [&](const auto & entry) {
            return std::none_of(tests.begin(), tests.end(),
                                [&](const BenchTest & test) { return test.flash_attn == entry.first; });
        });
    }

    void choose_setting(BenchTest & test) {
        const std::vector<int64_t> turns = turns_of(options, test);
        const std::array<BenchContext *, 2> both = { bare.at(0).get(), bare.at(1).get() };
        std::array<std::vector<double>, 2> seconds;
        for (int round = 0; round <= rounds_to_choose; round++) { // the first one warms up
            progress.show(fmt::format("{}: -fa 0 and 1, round {} of {}", test.name(), round, rounds_to_choose));
            const auto spent = one_round(both, test.n_depth, turns, round, [](const BenchContext &) {});
            for (size_t i = 0; i < 2 && round > 0; i++) {
                seconds[i].push_back(spent[i]);
            }
        }
        const double ratio = analysis::paired_ratio(seconds[0], seconds[1], options.level).ratio; // 1 over 0
        const size_t better = ratio >= 1.0 ? 1 : 0;
        test.flash_attn = static_cast<int>(better);
        test.slower = { static_cast<int>(1 - better), test.median_speed(seconds[1 - better]),
                        test.median_speed(seconds[better]), std::min(ratio, 1.0 / ratio) };
    }

    void make_controls() {
        for (const auto & [setting, context] : bare) {
            controls[setting] = make_context(setting);
        }
    }

    // The second phase: bare, bare again, ours.
    void measure(BenchTest & test, BenchContext & first, BenchContext & second, BenchContext & ours) {
        const std::vector<int64_t> turns = turns_of(options, test);
        const std::array<BenchContext *, 3> contexts = { &first, &second, &ours };
        test.test_time = time_now();
        uint64_t cache_bytes = 0; // touched in one round
        progress.show(fmt::format("{}: warming up", test.name()));
        one_round(contexts, test.n_depth, turns, 0,
                  [&](const BenchContext & context) { cache_bytes += context.cache_bytes(); });
        count_bytes(test, turns, cache_bytes);
        const PluginFigures before = plugin->figures();
        for (int round = 1; round <= options.rounds; round++) {
            const auto spent = one_round(contexts, test.n_depth, turns, round, [](const BenchContext &) {});
            test.bare.push_back(spent[0]);
            test.control.push_back(spent[1]);
            test.ours.push_back(spent[2]);
            progress.show(fmt::format("{}: round {} of {}, ours x {:.3f}", test.name(), round, options.rounds,
                                      test.ratio(options.level).ratio));
        }
        const PluginFigures figures = plugin->figures() - before;
        test.parts = figures.seconds;
        test.failures = figures.failures;
    }

    void count_bytes(BenchTest & test, const std::vector<int64_t> & turns, uint64_t cache_bytes) const {
        const Weights weights = weights_of(model.get(), options.model);
        double bytes = 0.0;
        for (const int64_t tokens : turns) {
            bytes += weights.bytes_per_token(tokens) * static_cast<double>(tokens);
        }
        test.weight_bytes_per_token = bytes / test.tokens();
        test.kv_bytes_per_token = static_cast<double>(cache_bytes) / test.tokens();
    }

    void describe(report::BenchInfo & info) const {
        std::array<char, 128> description = {};
        llama_model_desc(model.get(), description.data(), description.size());
        info.ours = side_now();
        info.model_filename = options.model;
        info.model_type = description.data();
        info.model_size = llama_model_size(model.get());
        info.model_n_params = llama_model_n_params(model.get());
        info.n_batch = options.batch;
        info.n_ubatch = options.ubatch;
        info.n_threads = options.threads;
        info.type_k = ggml_type_name(options.type_k);
        info.type_v = ggml_type_name(options.type_v);
        info.load_mode = llama_load_mode_name(llama_model_default_params().load_mode);
        info.mode = options.mode;
        info.text = options.text;
        info.rounds = options.rounds;
        info.level = options.level;
    }

    const BenchOptions & options;
    std::string plugin_path;
    std::vector<BenchTest> tests;
    llama_model_ptr model;
    ContextShape shape;
    Tokens text;
    std::unique_ptr<Plugin> plugin;
    std::map<int, ContextPointer> bare; // by setting of -fa
    std::map<int, ContextPointer> controls;
    Progress progress;
};

} // namespace

report::Bench bench(const BenchOptions & options) { return Run(options).measure(); }

} // namespace cascade::cli
