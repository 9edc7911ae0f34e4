// A model with its weights in F32: without the noise that quantised ones make of any change (docs/quality.md).
#pragma once

#include "llama-cpp.h"

#include <string>

namespace cascade::cli {

// Throws std::runtime_error with a message for a person. The copy is gone from the disk as soon as it is loaded: the
// engine maps it.
llama_model_ptr load_in_f32(const std::string & path, int threads);

// As the engine describes it, with the type of most weights.
std::string description_of(const llama_model * model);

} // namespace cascade::cli
