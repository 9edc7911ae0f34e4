// The names of a sidecar's values, and the sums over them that tell a damaged file from a whole one.
#pragma once

#include "sidecar/gguf_walk.h"
#include "sidecar/subspaces.h"

#include <array>

namespace cascade::sidecar::key {

constexpr const char * version = "cascade.sidecar.version";
constexpr const char * checksum = "cascade.sidecar.checksum";
constexpr const char * model_sha256 = "cascade.sidecar.model_sha256";
constexpr const char * fingerprints = "cascade.sidecar.fingerprints";
constexpr const char * text = "cascade.sidecar.text";
constexpr const char * date = "cascade.sidecar.date";
constexpr const char * context = "cascade.sidecar.context";
constexpr const char * scored = "cascade.sidecar.scored";
constexpr const char * near = "cascade.sidecar.near.";
constexpr const char * balanced = "cascade.sidecar.balanced.";
constexpr const char * epsilons = "epsilons"; // of a mode

constexpr const char * subspace_version = "cascade.subspace.version"; // where it is, subspaces are
constexpr const char * subspace_checksum = "cascade.subspace.checksum";
constexpr const char * data_checksum = "cascade.subspace.data_checksum";
constexpr const char * subspace_text = "cascade.subspace.text";
constexpr const char * subspace_date = "cascade.subspace.date";
constexpr const char * subspace_context = "cascade.subspace.context";
constexpr const char * subspace_tokens = "cascade.subspace.tokens";
// By input, in the order of their bases; of curves `curve_points` values each.
constexpr const char * curve_counts = "cascade.subspace.curve_counts";
constexpr const char * curve_energies = "cascade.subspace.curve_energies";
constexpr const char * residual_energies = "cascade.subspace.residual_energies";
constexpr const char * held_out = "cascade.subspace.held_out"; // `held_out_points` values each
constexpr const char * gains = "cascade.subspace.gains";
constexpr const char * rough_errors = "cascade.subspace.rough_errors";

constexpr const char * basis_suffix = ".basis"; // of tensors
constexpr const char * image_suffix = ".image";
constexpr const char * rough_suffix = ".rough";
constexpr const char * rest_suffix = ".rest";
constexpr const char * weight_suffix = ".weight"; // of the model's

struct Figure { // of a mode
    const char * name;
    float Tuned::* value;
};

constexpr std::array<Figure, 7> figures = { {
    { "kl", &Tuned::kl },
    { "kl_high", &Tuned::kl_high },
    { "kl_budget", &Tuned::kl_budget },
    { "top1", &Tuned::top1 },
    { "top1_low", &Tuned::top1_low },
    { "top1_budget", &Tuned::top1_budget },
    { "bytes_share", &Tuned::bytes_share },
} };

} // namespace cascade::sidecar::key

namespace cascade::sidecar {

uint64_t checksum_of(const Sidecar & sidecar);

// All that a file says of its subspaces but their tensors' bytes, whose sum is part of it.
struct SubspaceValues {
    Calibration calibration;
    std::vector<uint32_t> curve_counts;
    std::vector<float> curve_energies;
    std::vector<float> residual_energies;
    std::vector<float> held_out;
    std::vector<float> gains;
    std::vector<float> rough_errors;
    uint64_t data_checksum = 0;
};
uint64_t checksum_of(const SubspaceValues & values, const std::vector<GgufTensor> & tensors,
                     const std::string & model_sha256);

} // namespace cascade::sidecar
