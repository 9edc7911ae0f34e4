// Whether it pays to compute linear layers through the subspaces that were found, in a sentence.
#pragma once

#include <string>

namespace cascade::cli {

// By the weights' bytes in the model's file and the sidecar's own, at the share of held-out tokens that pass the
// published gate. Empty where either can't be read.
std::string calibration_verdict(const std::string & model, const std::string & sidecar);

} // namespace cascade::cli
