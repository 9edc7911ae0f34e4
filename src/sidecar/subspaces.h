// The subspaces of a sidecar: for each input that linear maps of a layer share, a basis V of its leading directions,
// and for each of those maps the image W V, so that W x = (W V) g + W r where g = V^T x and x = V g + r. There may be a
// rough copy W' of each map too, with fewer bits, and the image of what it lacks, (W - W') V: for tokens whose residual
// is too large to be skipped, but small enough for W' r.
//
// In the file each input is a tensor "blk.3.attn_q.basis", named after the first weight that reads it, and behind it
// one tensor "blk.3.attn_q.image" for each weight, followed by ".rough" and ".rest" where there is a rough copy. A file
// is read into memory once, and nothing of it is used before all of it is checked: what was checked can't change
// afterwards, and a file that is cut while in use harms nobody, as it would if it were mapped. docs/plugin.md has the
// format.
#pragma once

#include "sidecar/sidecar.h"

#include "ggml.h"

#include <array>
#include <memory>

namespace cascade::sidecar {

constexpr uint32_t subspace_version = 2;
constexpr size_t curve_points = 8;
constexpr size_t held_out_points = 9; // equally many tokens between them
constexpr uint32_t widest_input = uint32_t{ 1 } << 20U;

// A matrix in the layout of a ggml tensor of ne = { columns, rows }: rows are contiguous. 32-byte aligned, every number
// finite.
struct TensorView {
    ggml_type type = GGML_TYPE_F32;
    int64_t columns = 0;
    int64_t rows = 0;
    const std::byte * data = nullptr;
    size_t size = 0; // bytes
};

struct Image {
    std::string weight; // "blk.3.attn_q.weight"
    TensorView tensor;  // { k, outputs of the weight }; f32, f16, q8_0 or q4_0
    TensorView rough;   // { width, outputs }; q4_0, q3_K or q2_K; no data: there is none
    TensorView rest;    // { k, outputs }: the image of what the rough copy lacks
};

struct EnergyPoint {
    uint32_t k = 0;      // 0: no point
    float energy = 0.0F; // share of the input's energy that its first k directions hold

    bool operator==(const EnergyPoint &) const = default;
};

// What is known of an input beside its tensors.
struct SubspaceFigures {
    std::array<EnergyPoint, curve_points> curve; // k grows; points that aren't there come last
    float residual_energy = 0.0F;                // share of the calibration text's energy outside the basis
    // Of ||r|| / ||x|| over tokens that were not calibrated on: the least, quantiles, the largest; all 1: none were.
    std::array<float, held_out_points> held_out = {};
    float gain = 1.0F;        // what the gate multiplies ||r|| / ||x|| with: 1, or the output's error for the input's
    float rough_error = 0.0F; // of the rough copies, relative to the weights; 0: there are none

    bool has_rough() const { return rough_error > 0.0F; }
    bool operator==(const SubspaceFigures &) const = default;
};

struct Subspace {
    std::string input; // "blk.3.attn_q": the first weight that reads it
    int layer = -1;    // 0 to the number of fingerprints - 1
    uint32_t width = 0;
    uint32_t k = 0;
    SubspaceFigures figures;
    TensorView basis;          // { width, k }: a row for each direction, all of unit length; f32 or f16
    std::vector<Image> images; // in the file's order; the first is the input's namesake

    // In the file's order.
    std::vector<const TensorView *> tensors() const;
};

// Share of held-out tokens with ||r|| / ||x|| of at most `bound`, between the quantiles on a straight line.
double held_out_within(const SubspaceFigures & figures, double bound);

// Where subspaces come from.
struct Calibration {
    std::string text; // the name of the file
    std::string date;
    uint32_t context = 0; // tokens of a window
    uint32_t tokens = 0;  // in all windows

    bool operator==(const Calibration &) const = default;
};

// Owns what the views point to.
class SubspaceFile {
  public:
    const Sidecar & sidecar() const {
        return binding;
    } // tuning (empty where not tuned), SHA-256, fingerprints by layer
    const Calibration & calibration() const { return made; }
    std::span<const Subspace> subspaces() const { return all; } // in the file's order; may be none

  private:
    friend struct SubspaceReader;
    struct Free {
        void operator()(std::byte * bytes) const;
    };
    std::unique_ptr<std::byte[], Free> bytes;
    Sidecar binding;
    Calibration made;
    std::vector<Subspace> all;
};

struct Opened {
    std::shared_ptr<const SubspaceFile> file;
    std::string complaint; // why there is none, in words that follow the file's name
};

// Both throw std::bad_alloc at most, and allocate the file's size, and for its description a few times that of it.
Opened open_subspaces(const std::string & path);
Opened read_subspaces(std::span<const std::byte> bytes);

} // namespace cascade::sidecar
