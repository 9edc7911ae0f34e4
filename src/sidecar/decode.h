// What a sidecar's head says, checked: all but its tensors' bytes.
#pragma once

#include "sidecar/subspaces.h"
#include "sidecar/values.h"

#include <optional>
#include <string_view>

namespace cascade::sidecar {

struct Head {
    std::optional<Sidecar> sidecar; // none: there is a complaint
    std::string complaint;
    Calibration calibration;
    std::vector<Subspace> subspaces; // their views have no data yet
    std::vector<uint64_t> offsets;   // of the tensors in the file, in its order
    uint64_t data_checksum = 0;
};

Head decode_head(const Gguf & file);

// The parts of it.
Loaded decode_sidecar(Values & values);
// Into `head`; a complaint, or nothing.
std::string decode_subspaces(const Gguf & file, Values & values, const Sidecar & sidecar, Head & head);

// Without letters that a terminal would obey.
bool is_plain(std::string_view text);

} // namespace cascade::sidecar
