// What the plugin will know a model's layers by (graph/weight_identity.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cascade::cli {

// By layer, as the plugin will compute them, from the model's own graph. Starts the engine. Throws std::runtime_error
// with a message for a person where no layer can be known.
std::vector<uint64_t> fingerprints_of(const std::string & model);

} // namespace cascade::cli
