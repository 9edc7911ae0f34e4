// The engine as the plugin finds it: everything comes from the registry, since the CPU backend is a plugin as well.
#pragma once

#include "ggml-backend-impl.h"

#include <string>

namespace cascade::backend {

// The engine's CPU device; nullptr where it has none.
ggml_backend_dev_t cpu_device();

// A function of the engine's CPU backend by its registered name, such as "ggml_backend_set_n_threads".
void * cpu_function(const char * name);

// Why the running engine is not the one we were built for; empty: it is. The engine's API version alone is no guard:
// its structs have changed under one and the same number.
std::string engine_mismatch(const std::string & version, const std::string & commit);

} // namespace cascade::backend
