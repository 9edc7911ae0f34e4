// What a person can set, in any llama.cpp program by variables and in `cascade` by flags.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cascade {

enum class Mode {
    off,       // claims nothing: the engine runs as if we weren't there
    exact,     // takes the graph and hands it on untouched
    fast,      // every attention computed exactly by our own kernels: equal up to rounding
    near,      // long contexts on a cover, close to what the model would say
    balanced,  // the same, faster and less close
    gated,     // linear layers through calibrated subspaces, where a token's gate lets it; attention is the engine's
    reference, // every attention computed plainly by us: the oracle, slow
};

// The ways to compute one attention, or the linear maps of one input.
enum class Way : uint8_t {
    engine,    // the engine's own op
    fast,      // exactly, by our kernels
    joint,     // on a cover
    gated,     // a linear map, through a subspace
    reference, // plainly
};

std::string_view way_name(Way way);

// Places where tests make us fail, to see that the engine's own result comes out all the same.
enum class Fault {
    none,
    read,    // memory runs out while a graph is read
    rewrite, // memory runs out while the shadow graph is built
    scratch, // memory runs out inside a node of ours
    node,    // a node of ours reports an error
};

struct Settings {
    Mode mode = Mode::exact;
    std::string stats; // where to write what was done: a file, "-" for stderr, empty for nowhere
    Fault fault = Fault::none;
    float epsilon = -1.0F; // near, balanced, gated: of the gate; below 0: the mode's own

    std::optional<Way> way; // near, balanced: engine, fast or joint wherever it can be done; gated: engine or gated;
                            // none: by cost
    std::string costs;      // file of measured costs; empty: in the user's cache directory, "-": none
    std::string sidecar;    // near, balanced: a file of epsilons by layer, which `epsilon` overrides; gated: of
                            // subspaces; empty: none

    int64_t audit = 0; // one token in so many is computed exactly as well; 0: none

    bool rewrites() const { return mode != Mode::off && mode != Mode::exact; }
    bool approximates() const { return mode == Mode::near || mode == Mode::balanced; }
    float gate() const;
    std::optional<Way> attention_way() const { return way == Way::gated ? std::nullopt : way; } // that is forced
};

// The modes by name, for messages and help.
std::string_view mode_names();
std::string_view mode_name(Mode mode);
std::optional<Mode> parse_mode(std::string_view name);

// Reads GGML_CASCADE, GGML_CASCADE_EPS, GGML_CASCADE_SIDECAR, GGML_CASCADE_AUDIT, GGML_CASCADE_WAY, GGML_CASCADE_COSTS,
// GGML_CASCADE_STATS and GGML_CASCADE_FAULT. What can't be understood is left at its default and named in `complaints`,
// each a sentence that says what to do.
using Lookup = std::function<const char *(const char * variable)>;
Settings settings_from(const Lookup & lookup, std::vector<std::string> & complaints);

} // namespace cascade
