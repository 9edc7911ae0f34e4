// The work behind `cascade calibrate`: second moments of every linear map's input over a text, their leading
// directions, and the images of the weights, in a sidecar.
#pragma once

#include "cli/inherited_gates.h"
#include "cli/linear_inputs.h"
#include "sidecar/subspaces.h"
#include "subspace/basis.h"

#include <string>
#include <vector>

namespace cascade::cli {

struct CalibrateOptions {
    std::string model;
    std::string text;
    std::string sidecar; // to write
    int64_t k = 256;
    double energy = 0.0; // above 0: k for so much of it instead
    int64_t tokens = 16384;
    int64_t length = 2048;             // of a window
    ggml_type type = GGML_TYPE_F16;    // of images
    ggml_type rough = GGML_TYPE_COUNT; // of rough copies of the maps; GGML_TYPE_COUNT: none
    bool for_output = false;           // directions that hold most of the maps' output, not of their input
    bool gate_output = false;          // the gate goes by the output's error, by estimate
    bool keep = false;                 // moments, for another calibration on the same text
    double memory = 4.0;               // GiB for moments and what their eigenproblems need
    std::vector<std::string> inputs;   // by the first map that reads them: "attn_q"; none: all
    int threads = 1;
    bool resume = false;
};

// What is known of an input when all is done.
struct CalibratedInput {
    SharedInput input;
    int64_t k = 0;
    std::vector<double> values;     // leading eigenvalues over the trace, cumulated: the energy of the first 1, 2, …
    double inherited_energy = -1.0; // share within the basis of the layer below; below 0: there is none
    int64_t updates = 0;            // own vectors that are further than `inherit_tolerance` from its span
    std::vector<float> held_out;    // ||r|| / ||x|| by token
    InheritedGates inherited_gates; // the same tokens
    double output_lost = -1.0;      // share of the output's energy; below 0: not looked at
    double gain = 1.0;              // of the gate
    bool by_blocks = false;
};

constexpr double inherit_tolerance = 0.05;
constexpr double gate = 0.05; // the paper's epsilon

struct CalibrationTimes { // seconds
    double prefill = 0.0;
    double moments = 0.0;
    double eigenproblems = 0.0;
    double held_out = 0.0;
    double images = 0.0;
    double bare_prefill = 0.0; // of as many tokens, from the held-out window
};

struct CalibrateResult {
    bool complete = false; // or interrupted
    std::string architecture;
    std::string weights;
    std::string date;
    int64_t windows = 0;
    int64_t tokens = 0;
    int64_t passes_over_text = 0; // groups of inputs that fit the memory
    int64_t passes_done = 0;      // of this group
    std::vector<CalibratedInput> inputs;
    CalibrationTimes seconds;
    uint64_t sidecar_bytes = 0;
};

// Throws std::runtime_error with a message for a person. An interrupt leaves what is done.
CalibrateResult calibrate(const CalibrateOptions & options);

} // namespace cascade::cli
