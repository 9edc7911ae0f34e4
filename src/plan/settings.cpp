#include "cascade/settings.h"

#include <array>
#include <utility>

namespace cascade {

namespace {

constexpr std::array<std::pair<std::string_view, Mode>, 3> modes = { {
    { "off", Mode::off },
    { "exact", Mode::exact },
    { "reference", Mode::reference },
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

std::string_view value_of(const Lookup & lookup, const char * variable) {
    const char * value = lookup(variable);
    return value != nullptr ? value : "";
}

} // namespace

std::string_view mode_names() { return "off, exact, reference"; }

std::string_view mode_name(Mode mode) {
    for (const auto & [name, known] : modes) {
        if (known == mode) {
            return name;
        }
    }
    return "?";
}

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
