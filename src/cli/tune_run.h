// The work behind `cascade tune`: what each layer costs alone, epsilons in proportion, and the largest of those that
// keep each mode's promise, beside one epsilon for all layers under the same promise.
#pragma once

#include "cascade/settings.h"
#include "evaluate/summary.h"
#include "evaluate/tuning.h"
#include "sidecar/sidecar.h"

#include <optional>
#include <string>
#include <vector>

namespace cascade::cli {

struct TunedMode {
    Mode mode = Mode::near;
    evaluate::Budget budget;
};

struct TuneOptions {
    std::string model;
    std::string text;
    std::vector<TunedMode> modes;
    int64_t length = 2048;
    int64_t windows = 4;
    int64_t groups = 32; // of neighbouring layers that are probed together, at most
    int threads = 1;
    bool f32 = false;
    bool resume = false;
};

// The largest epsilons of one kind that keep the promise, and what was measured with them.
struct Found {
    std::vector<float> epsilons;
    evaluate::MethodSummary measured;
};

struct ModeResult {
    TunedMode wanted;
    std::optional<Found> by_layer; // none: not even the smallest tried keep the promise
    std::optional<Found> uniform;
    bool layers_pay = false; // by_layer reads fewer bytes

    const std::optional<Found> & chosen() const { return layers_pay ? by_layer : uniform; }
};

struct LayerProbe {
    int first = 0; // layers of a group
    int last = 0;
    evaluate::MethodSummary measured; // all others left to the engine
};

struct TuneResult {
    std::string architecture;
    std::string weights;
    int64_t windows = 0;
    int64_t probe_windows = 0;
    int64_t measured = 0;
    bool complete = false;
    double probe_epsilon = 0.0;
    std::vector<LayerProbe> probes;
    std::vector<double> relative; // epsilons, by layer
    std::vector<ModeResult> modes;
    std::vector<uint64_t> fingerprints;
    std::string kept_in; // the file of finished parts, to be removed when all is written
};

// Throws std::runtime_error with a message for a person. An interrupt leaves what is done.
TuneResult tune(const TuneOptions & options);

} // namespace cascade::cli
