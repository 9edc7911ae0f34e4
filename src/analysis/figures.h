// What an analysis measures: figures of each layer, for each method, source and tau; by window of text, and over all.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace cascade::analysis {

enum class Method {
    threshold,   // Definition 1, each layer by itself: the independent choice
    leader,      // each layer by itself, compared with representatives only
    inherit,     // Algorithm 1 as printed
    causal,      // its causal correction
    linked,      // links of the layer below first
    adaptive,    // linked, with a tau that follows the turnover
    unvalidated, // control: the first layer's set, never looked at again
    random,      // control: a random set of the independent choice's size
};

constexpr std::array method_names = { "threshold", "leader",   "inherit",     "causal",
                                      "linked",    "adaptive", "unvalidated", "random" };
constexpr size_t method_count = method_names.size();

inline const char * name_of(Method method) { return method_names[static_cast<size_t>(method)]; }
std::optional<Method> method_named(const std::string & name);

enum class Figure {
    tau,
    r,
    adds,                // since the layer before
    removes,             // since the layer before
    turnover,            // both, over r of the layer before
    jaccard_previous,    // to the same method's set in the layer before
    jaccard_independent, // to the independent choice in this layer
    growth,              // r over the independent choice's
    missed,              // of the independent choice, not in this set
    uncovered,           // tokens that no representative at or before them can speak for
    gram_entries,        // as the paper counts them
    multiply_adds,       // really done
    seconds,
    copy_error, // of the attention's output under the paper's copying, relative to its norm
};

constexpr std::array figure_names = {
    "tau",    "r",      "adds",      "removes",      "turnover",      "jaccard_previous", "jaccard_independent",
    "growth", "missed", "uncovered", "gram_entries", "multiply_adds", "seconds",          "copy_error"
};
constexpr size_t figure_count = figure_names.size();

constexpr double not_measured = std::numeric_limits<double>::quiet_NaN();

// One layer's figures, or means over layers.
class Figures {
  public:
    Figures() { values.fill(not_measured); }
    double & operator[](Figure figure) { return values[static_cast<size_t>(figure)]; }
    double operator[](Figure figure) const { return values[static_cast<size_t>(figure)]; }
    std::array<double, figure_count> values = {};
};

// One method on one source, all layers.
struct Series {
    std::string source;
    double tau = 0.0;
    Method method = Method::threshold;
    std::vector<Figures> layers;
    std::vector<std::vector<int32_t>> sets; // representatives, for windows that are shown; else empty
};

// Jaccard of the independent choice of layer against layer.
struct LayerSimilarity {
    std::string source;
    double tau = 0.0;
    std::vector<std::vector<double>> jaccard;
};

// All that one window of text gave.
struct Window {
    int64_t tokens = 0;
    int64_t index = 0;
    std::vector<Series> series;
    std::vector<LayerSimilarity> similarity;
    std::vector<std::string> pieces; // the text, token by token, for windows that are shown
    double seconds = 0.0;            // this window's pass, everything included
    double bare_seconds = not_measured;
};

} // namespace cascade::analysis
