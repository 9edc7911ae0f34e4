// Which weight a tensor is, told by its name, type, shape and every byte of it.
#pragma once

#include "ggml.h"

#include <cstdint>
#include <optional>

namespace cascade::graph {

// None for all but vectors of floats in memory that can be read: norms are never quantised, rearranged or large, but
// may be on another device.
std::optional<uint64_t> identity_of(const ggml_tensor * weight);

} // namespace cascade::graph
