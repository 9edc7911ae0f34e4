#include "cascade/settings.h"

#include <array>
#include <charconv>
#include <utility>

namespace cascade {

namespace {

constexpr std::array<std::pair<std::string_view, Mode>, 7> modes = { {
    { "off", Mode::off },
    { "exact", Mode::exact },
    { "fast", Mode::fast },
    { "near", Mode::near },
    { "balanced", Mode::balanced },
    { "gated", Mode::gated },
    { "reference", Mode::reference },
} };

constexpr std::array<std::pair<std::string_view, Way>, 5> ways = { {
    { "engine", Way::engine },
    { "fast", Way::fast },
    { "joint", Way::joint },
    { "gated", Way::gated },
    { "reference", Way::reference },
} };

constexpr std::array<std::pair<std::string_view, Fault>, 5> faults = { {
    { "none", Fault::none },
    { "read", Fault::read },
    { "rewrite", Fault::rewrite },
    { "scratch", Fault::scratch },
    { "node", Fault::node },
} };

template <typename Table>
auto find_name(const Table & table, std::string_view name) -> std::optional<decltype(table[0].second)> {
    for (const auto & [known, value] : table) {
        if (known == name) {
            return value;
        }
    }
    return std::nullopt;
}

template <typename Table, typename Value>
std::string_view name_in(const Table & table, Value value) {
    for (const auto & [name, known] : table) {
        if (known == value) {
            return name;
        }
    }
    return "?";
}

template <typename Number>
std::optional<Number> number(std::string_view text) {
    Number value = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && stop == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

std::string_view value_of(const Lookup & lookup, const char * variable) {
    const char * value = lookup(variable);
    return value != nullptr ? value : "";
}

} // namespace

float Settings::gate() const {
    constexpr float near_epsilon = 0.012F;
    constexpr float balanced_epsilon = 0.045F;
    constexpr float published_epsilon = 0.05F;
    if (epsilon >= 0.0F) {
        return epsilon;
    }
    if (mode == Mode::gated) {
        return published_epsilon;
    }
    return mode == Mode::near ? near_epsilon : balanced_epsilon;
}

std::string_view mode_names() { return "off, exact, fast, near, balanced, gated, reference"; }

std::string_view mode_name(Mode mode) { return name_in(modes, mode); }
std::string_view way_name(Way way) { return name_in(ways, way); }

std::optional<Mode> parse_mode(std::string_view name) { return find_name(modes, name); }

Settings settings_from(const Lookup & lookup, std::vector<std::string> & complaints) {
    Settings settings;
    if (const auto name = value_of(lookup, "GGML_CASCADE"); !name.empty()) {
        if (const auto mode = parse_mode(name)) {
            settings.mode = *mode;
        } else {
            complaints.push_back("GGML_CASCADE=" + std::string(name) + " is unknown, running exact; give one of " +
                                 std::string(mode_names()));
        }
    }
    if (const auto text = value_of(lookup, "GGML_CASCADE_EPS"); !text.empty()) {
        const auto value = number<float>(text);
        if (value && *value >= 0.0F && *value <= 1.0F) {
            settings.epsilon = *value;
        } else {
            complaints.push_back("GGML_CASCADE_EPS=" + std::string(text) + " is ignored; give a number from 0 to 1");
        }
    }
    if (const auto text = value_of(lookup, "GGML_CASCADE_AUDIT"); !text.empty()) {
        const auto one_in = text.starts_with("1/") ? number<int64_t>(text.substr(2)) : std::nullopt;
        if (one_in && *one_in >= 1) {
            settings.audit = *one_in;
        } else {
            complaints.push_back("GGML_CASCADE_AUDIT=" + std::string(text) + " is ignored; give 1/N, such as 1/1000");
        }
    }
    if (const auto name = value_of(lookup, "GGML_CASCADE_WAY"); !name.empty()) {
        settings.way = find_name(ways, name);
        if (!settings.way || settings.way == Way::reference) {
            settings.way.reset();
            complaints.push_back("GGML_CASCADE_WAY=" + std::string(name) +
                                 " is unknown, ignored; give engine, fast, joint or gated");
        }
    }
    settings.costs = value_of(lookup, "GGML_CASCADE_COSTS");
    settings.sidecar = value_of(lookup, "GGML_CASCADE_SIDECAR");
    settings.stats = value_of(lookup, "GGML_CASCADE_STATS");
    if (const auto name = value_of(lookup, "GGML_CASCADE_FAULT"); !name.empty()) {
        if (const auto fault = find_name(faults, name)) {
            settings.fault = *fault;
        } else {
            complaints.push_back("GGML_CASCADE_FAULT=" + std::string(name) +
                                 " is unknown, ignored; give none, read, rewrite, scratch or node");
        }
    }
    return settings;
}

} // namespace cascade
