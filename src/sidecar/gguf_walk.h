// A first look at a GGUF file of metadata alone, before the engine's reader sees it. That reader checks lengths against
// the file, but compares each key with all before it, trusts an alignment that the file names, and logs what it doesn't
// like; here a file is refused in one pass over its bytes, in silence and without allocating.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cascade::sidecar {

constexpr uint64_t most_keys = 64;
constexpr uint64_t longest_string = 1024;

// Why the bytes are no GGUF file of at most `most_keys` values and no tensors; nullptr: they are.
const char * objection_to(std::span<const std::byte> bytes);

} // namespace cascade::sidecar
