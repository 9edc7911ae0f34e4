// The subspaces of a sidecar: for each input that linear maps of a layer share, a basis V of its leading directions,
// and for each of those maps the image W V, so that W x = (W V) g + W r where g = V^T x and x = V g + r.
//
// In the file each input is a tensor "blk.3.attn_q.basis", named after the first weight that reads it, and behind it
// one tensor "blk.3.attn_q.image" for each weight. A file is read into memory once, and nothing of it is used before
// all of it is checked: what was checked can't change afterwards, and a file that is cut while in use harms nobody, as
// it would if it were mapped. docs/plugin.md has the format.
#pragma once

#include "sidecar/sidecar.h"

#include "ggml.h"

#include <array>
#include <memory>

namespace cascade::sidecar {

constexpr uint32_t subspace_version = 1;
constexpr size_t curve_points = 8;
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
    float held_out_median = 0.0F;  // of ||r|| / ||x|| over tokens that were not calibrated on; 1: none were held out
    float held_out_passing = 0.0F; // share of those with ||r|| / ||x|| <= 0.05

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
};

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
