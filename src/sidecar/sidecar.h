// The sidecar: what `cascade tune` found for a model, in a GGUF file that can be shipped beside it.
//
// It holds an epsilon for each layer and mode, and says where they come from. The plugin sees graphs and no model file,
// so each layer is bound by a fingerprint of its normalisation weight (graph/weight_identity.h); the SHA-256 of the
// model's file is for programs that have the file. Files come from anywhere: nothing of one is used before all of it is
// checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cascade::sidecar {

constexpr uint32_t format_version = 1;
constexpr size_t most_layers = 4096;
constexpr uint64_t no_fingerprint = 0; // of a layer that can't be recognised

// One mode's epsilons, and what was measured with them.
struct Tuned {
    std::vector<float>
        epsilons;    // by layer, 0 to 1; 0: the engine's own attention; empty: not tuned, the mode's default
    float kl = 0.0F; // mean, and the upper end of its interval
    float kl_high = 0.0F;
    float kl_budget = 0.0F;
    float top1 = 0.0F; // share, and the lower end of its interval
    float top1_low = 0.0F;
    float top1_budget = 0.0F;
    float bytes_share = 0.0F; // of the past's bytes that were read

    bool operator==(const Tuned &) const = default;
};

struct Sidecar {
    std::string model_sha256;           // 64 hexadecimal digits
    std::vector<uint64_t> fingerprints; // by layer
    std::string text;                   // the name of the file it was tuned on
    std::string date;
    uint32_t context = 0; // tokens of a window
    uint32_t scored = 0;  // tokens, in all windows
    Tuned near;
    Tuned balanced;

    bool operator==(const Sidecar &) const = default;
};

struct Loaded {
    std::optional<Sidecar> sidecar;
    std::string complaint; // why there is none, in words that follow the file's name
};

// All of these throw std::bad_alloc at most, and allocate no more than a few times what is really there.
std::vector<std::byte> encode(const Sidecar & sidecar);
Loaded decode(std::span<const std::byte> bytes);
Loaded load(const std::string & path);

// Whole or not at all; false where the place can't be written.
bool save(const Sidecar & sidecar, const std::string & path);

} // namespace cascade::sidecar
