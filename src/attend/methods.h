// The methods by name, and what a person can say of each: NAME[:BUDGET][:OPTION=VALUE]…, as in joint:0.2:bits=3.
#pragma once

#include "attend/method.h"

#include <string>
#include <string_view>
#include <vector>

namespace cascade {

using Select = Selection (*)(const Block & block, const MethodOptions & options, Team & team);

struct MethodSpec {
    std::string label; // as it was written
    std::string name;
    Select select = nullptr; // nullptr: those that don't choose by blocks, such as exact, copy and the plugin's
    MethodOptions options;
    bool wants_cover = false;
    Source source = Source::key; // rows that its cover is chosen on
    double tau = 0.30;           // copy, representatives
    bool count = true;           // representatives: what one speaks for is added to its logit
    bool random_set = false;     // representatives: the control, a random set of the same size
    int64_t window = -1;         // its own exact window; -1: that of the evaluation
    std::string sidecar;         // the plugin's: a file; empty: what GGML_CASCADE_SIDECAR names

    // What the method reads for a block: its rule's choice, and, where `sinks` asks for them, the first tokens in any
    // case, within the same budget.
    Selection choose(const Block & block, Team & team) const;

    bool leaves_alone() const { return name == "exact" || options.epsilon == 0.0; }
    bool by_plugin() const; // measured in the plugin itself, not here
    bool wants_rows() const;
    double cover_share() const; // of the past
};

struct MethodAbout {
    const char * name;
    const char * about; // one line
};

std::vector<MethodAbout> method_list();

// Throws std::invalid_argument with a message that names what is known.
MethodSpec parse_method(std::string_view text);

} // namespace cascade
