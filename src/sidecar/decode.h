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
    std::vector<Subspace> subspaces; // their views' data are offsets in the file still, see `offsets`
    std::vector<uint64_t> offsets;   // of the tensors, in the file's order
    uint64_t data_checksum = 0;
};

Head decode_head(const Gguf & file);

// The parts of it.
Loaded decode_sidecar(Values & values);
std::string decode_subspaces(const Gguf & file, Values & values, Head & head); // a complaint

// Without letters that a terminal would obey.
bool is_plain(std::string_view text);

} // namespace cascade::sidecar
