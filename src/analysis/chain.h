// One source of one model, layer after layer: each method's cover, and what it costs and keeps.
#pragma once

#include "analysis/figures.h"
#include "cascade/cover.h"

#include <array>
#include <vector>

namespace cascade::analysis {

struct ChainOptions {
    CoverOptions cover;
    std::vector<Method> methods;
    uint64_t seed = 1; // of the random control
    bool keep_sets = false;
};

class Chain {
  public:
    Chain(std::string source, const ChainOptions & options, Team & team);

    // The next layer's rows. Covers of this layer can be asked for until the next call.
    void add_layer(const TokenRows & rows);

    // Methods whose covers speak for every token, for the paper's copying; nullptr for one that isn't run.
    const Cover * cover(Method method) const;
    void set_copy_error(Method method, double error);

    std::vector<Series> take_series();
    LayerSimilarity similarity() const;

  private:
    struct State {
        bool wanted = false;
        Cover cover;
        double tau = 0.0;
        Series series;
    };
    struct Step {
        Cover cover;
        Work work;
    };
    Step choose(Method method, const TokenRows & rows);
    Step choose_inherited(Method method, const TokenRows & rows);
    Figures figures_of(Method method, const TokenRows & rows, const Step & step, double seconds);
    State & state(Method method) { return states[static_cast<size_t>(method)]; }
    const State & state(Method method) const { return states[static_cast<size_t>(method)]; }

    std::string source;
    ChainOptions options;
    Team & team;
    int64_t layer = 0;
    std::array<State, method_count> states;
    std::vector<std::vector<int32_t>> independent; // the independent choice of every layer
};

} // namespace cascade::analysis
