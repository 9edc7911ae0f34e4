// The names of a sidecar's values, and the sum over them that tells a damaged file from a whole one.
#pragma once

#include "sidecar/sidecar.h"

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

} // namespace cascade::sidecar
