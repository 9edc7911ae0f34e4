#include "attend/methods.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <functional>
#include <numeric>
#include <stdexcept>

namespace cascade {

namespace {

struct Entry {
    const char * name;
    Select select;
    const char * about;
};

constexpr std::array entries = {
    Entry{ "exact", nullptr, "the engine's own attention" },
    Entry{ "fast", nullptr, "the plugin's mode: exact, by our own kernels" },
    Entry{ "near", nullptr, "the plugin's mode: long contexts on a cover, close to dense" },
    Entry{ "balanced", nullptr, "the plugin's mode: the same, faster and less close" },
    Entry{ "gated", nullptr, "the plugin's mode: linear layers through the subspaces of GGML_CASCADE_SIDECAR" },
    Entry{ "copy", nullptr, "the paper: representatives only, outputs copied from the nearest one anywhere" },
    Entry{ "copy-earlier", nullptr, "the same, from the nearest earlier one" },
    Entry{ "representatives", nullptr, "all queries, keys of the representatives only, and a moving window" },
    Entry{ "proportional", select_proportional, "a cover speaks for the past: mean key and value, log count" },
    Entry{ "refine", select_refine, "a smaller cover, the heaviest clusters opened" },
    Entry{ "joint", select_joint, "tokens opened by compressed keys, a cover speaks for the rest" },
    Entry{ "streaming", select_streaming, "first and most recent tokens (StreamingLLM)" },
    Entry{ "snapkv", select_snapkv, "tokens that earlier queries attended to (SnapKV, H2O)" },
    Entry{ "blocks", select_blocks, "blocks by their mean key (MoBA)" },
    Entry{ "quest", select_quest, "blocks by the smallest and largest values of their keys (Quest)" },
    Entry{ "sampled", select_sampled, "blocks by a sample of the queries (XAttention, MInference)" },
    Entry{ "random", select_random, "control: random tokens" },
    Entry{ "oracle", select_oracle, "control: the tokens that really get most" },
};

// A list for a message.
class Listed {
  public:
    void add(std::string_view name) {
        text += text.empty() ? "" : ", ";
        text += name;
    }
    operator std::string_view() const { return text; } // NOLINT(google-explicit-constructor)

  private:
    std::string text;
};

[[noreturn]] void refuse(std::string_view method, std::initializer_list<std::string_view> why) {
    std::string message = "method '";
    message += method;
    message += "': ";
    for (const std::string_view part : why) {
        message += part;
    }
    throw std::invalid_argument(message);
}

double number(std::string_view text, std::string_view method, double low, double high) {
    double value = 0.0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !(value >= low && value <= high)) {
        std::array<char, 64> range = {};
        std::snprintf(range.data(), range.size(), "%g to %g", low, high);
        refuse(method, { "'", text, "' is no number from ", range.data() });
    }
    return value;
}

int64_t whole_number(std::string_view text, std::string_view method, int64_t low, int64_t high) {
    const double value = number(text, method, static_cast<double>(low), static_cast<double>(high));
    if (value != std::floor(value)) {
        refuse(method, { "'", text, "' is no whole number" });
    }
    return static_cast<int64_t>(value);
}

template <typename Value, size_t count>
Value choice(std::string_view text, std::string_view method,
             const std::array<std::pair<const char *, Value>, count> & of) {
    Listed known;
    for (const auto & [name, value] : of) {
        if (text == name) {
            return value;
        }
        known.add(name);
    }
    refuse(method, { "'", text, "' is none of ", known });
}

using Setter = std::function<void(MethodSpec &, std::string_view value)>;

constexpr int64_t most_tokens = int64_t{ 1 } << 24;

Setter whole(int64_t MethodOptions::* field, int64_t low, int64_t high) {
    return [=](MethodSpec & spec, std::string_view value) {
        spec.options.*field = whole_number(value, spec.label, low, high);
    };
}

Setter share(double MethodOptions::* field) {
    return
        [=](MethodSpec & spec, std::string_view value) { spec.options.*field = number(value, spec.label, 0.0, 1.0); };
}

struct Option {
    const char * name;
    const char * methods; // that take it, separated by spaces
    Setter set;
};

const std::vector<Option> & known_options() {
    static const std::vector<Option> known = {
        { "eps", "joint near balanced gated", share(&MethodOptions::epsilon) },
        { "cover", "joint refine", share(&MethodOptions::cover) },
        { "bits", "joint",
          [](MethodSpec & spec, std::string_view value) {
              spec.options.bits = static_cast<int>(whole_number(value, spec.label, 2, 16));
          } },
        { "coordinates", "joint", whole(&MethodOptions::coordinates, 0, 4096) },
        { "block", "blocks quest sampled", whole(&MethodOptions::block, 1, most_tokens) },
        { "sample", "sampled snapkv", whole(&MethodOptions::sample, 1, most_tokens) },
        { "sinks", "streaming snapkv blocks quest sampled random oracle",
          whole(&MethodOptions::sinks, 0, most_tokens) },
        { "rank", "joint refine blocks quest sampled oracle",
          [](MethodSpec & spec, std::string_view value) {
              constexpr std::array ranks = { std::pair{ "largest", Rank::largest }, std::pair{ "sum", Rank::sum } };
              spec.options.rank = choice(value, spec.label, ranks);
          } },
        { "rest", "joint",
          [](MethodSpec & spec, std::string_view value) {
              constexpr std::array rests = { std::pair{ "cover", Rest::cover }, std::pair{ "blocks", Rest::blocks },
                                             std::pair{ "groups", Rest::groups }, std::pair{ "mean", Rest::mean },
                                             std::pair{ "drop", Rest::drop } };
              spec.options.rest = choice(value, spec.label, rests);
          } },
        { "source", "copy copy-earlier representatives proportional refine joint",
          [](MethodSpec & spec, std::string_view value) {
              constexpr std::array sources = { std::pair{ "residual", Source::residual },
                                               std::pair{ "normalised", Source::normalised },
                                               std::pair{ "key", Source::key }, std::pair{ "value", Source::value } };
              spec.source = choice(value, spec.label, sources);
          } },
        { "tau", "copy copy-earlier representatives",
          [](MethodSpec & spec, std::string_view value) { spec.tau = number(value, spec.label, 0.01, 0.99); } },
        { "count", "representatives",
          [](MethodSpec & spec, std::string_view value) { spec.count = whole_number(value, spec.label, 0, 1) != 0; } },
        { "set", "representatives",
          [](MethodSpec & spec, std::string_view value) {
              constexpr std::array sets = { std::pair{ "chosen", false }, std::pair{ "random", true } };
              spec.random_set = choice(value, spec.label, sets);
          } },
        { "window", "representatives proportional refine joint streaming snapkv blocks quest sampled random oracle",
          [](MethodSpec & spec, std::string_view value) {
              spec.window = whole_number(value, spec.label, 0, most_tokens);
          } },
    };
    return known;
}

bool takes(const Option & option, const std::string & method) {
    std::string_view rest = option.methods;
    while (!rest.empty()) {
        const size_t end = std::min(rest.find(' '), rest.size());
        if (rest.substr(0, end) == method) {
            return true;
        }
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return false;
}

void set_option(MethodSpec & spec, std::string_view part) {
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos) {
        if (spec.select == nullptr) {
            refuse(spec.label, { "it takes no budget" });
        }
        spec.options.budget = number(part, spec.label, 0.0, 1.0);
        return;
    }
    Listed known;
    for (const Option & option : known_options()) {
        if (takes(option, spec.name)) {
            if (part.substr(0, equals) == option.name) {
                option.set(spec, part.substr(equals + 1));
                return;
            }
            known.add(option.name);
        }
    }
    refuse(spec.label, { "'", part.substr(0, equals), "' is none of its options (", known, ")" });
}

// As measured best for each, or as its paper has it.
void set_defaults(MethodSpec & spec) {
    if (spec.name != "streaming") {
        spec.options.sinks = 0;
    }
    if (spec.name == "sampled") {
        spec.options.block = 32;
    }
    if (spec.name == "snapkv") {
        spec.options.sample = 64;
    }
    if (spec.name == "refine") {
        spec.options.cover = 0.4;
    }
    if (spec.name == "blocks" || spec.name == "quest" || spec.name == "sampled") {
        spec.options.rank = Rank::sum;
    }
    if (spec.name == "copy" || spec.name == "copy-earlier" || spec.name == "representatives") {
        spec.source = Source::residual;
    }
}

} // namespace

Selection MethodSpec::choose(const Block & block, Team & team) const {
    const int64_t sinks = name == "streaming" ? 0 : std::min(options.sinks, tokens_in_budget(block, options.budget));
    if (sinks == 0 || block.past == 0) {
        return select(block, options, team);
    }
    MethodOptions rest = options;
    rest.budget -= static_cast<double>(sinks) / static_cast<double>(block.past);
    Selection selection = select(block, rest, team);
    const auto first = std::lower_bound(selection.opened.begin(), selection.opened.end(), static_cast<int32_t>(sinks));
    std::vector<int32_t> opened(static_cast<size_t>(sinks));
    std::iota(opened.begin(), opened.end(), 0);
    opened.insert(opened.end(), first, selection.opened.end());
    selection.opened = std::move(opened);
    return selection;
}

bool MethodSpec::by_plugin() const { return name == "fast" || name == "near" || name == "balanced" || name == "gated"; }

bool MethodSpec::wants_rows() const {
    return !by_plugin() && !leaves_alone() && (wants_cover || (select == nullptr && name != "exact"));
}

double MethodSpec::cover_share() const {
    return name == "proportional" ? options.budget : options.budget * options.cover;
}

std::vector<MethodAbout> method_list() {
    std::vector<MethodAbout> list;
    list.reserve(entries.size());
    for (const Entry & entry : entries) {
        list.push_back({ entry.name, entry.about });
    }
    return list;
}

MethodSpec parse_method(std::string_view text) {
    MethodSpec spec;
    spec.label = text;
    const std::string_view name = text.substr(0, text.find(':'));
    const auto * entry = std::find_if(entries.begin(), entries.end(), [&](const Entry & e) { return name == e.name; });
    if (entry == entries.end()) {
        Listed known;
        for (const Entry & one : entries) {
            known.add(one.name);
        }
        refuse(text, { "give one of ", known });
    }
    spec.name = entry->name;
    spec.select = entry->select;
    set_defaults(spec);
    for (size_t colon = text.find(':'); colon != std::string_view::npos; colon = text.find(':')) {
        text.remove_prefix(colon + 1);
        set_option(spec, text.substr(0, text.find(':')));
    }
    const Rest rest = spec.options.rest;
    spec.wants_cover = spec.name == "proportional" || spec.name == "refine" ||
                       (spec.name == "joint" && (rest == Rest::cover || rest == Rest::groups));
    return spec;
}

} // namespace cascade
