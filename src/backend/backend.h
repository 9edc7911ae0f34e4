// The ggml backend of the Cascade device.
#pragma once

#include "cascade/settings.h"

#include "ggml-backend-impl.h"

#include <memory>

namespace cascade::backend {

class Session;

// A backend that computes graphs on the engine's CPU device, through a Session. It reports the CPU as its device: it
// runs what the CPU runs, where the CPU runs it, and the engine's probes (-fa auto and the other fused ops compare the
// device of a node with the device of its layer) come out as they do without us.
ggml_backend_t make_backend(std::shared_ptr<const Settings> settings);

// Of a backend that make_backend made.
Session & session_of(ggml_backend_t backend);

} // namespace cascade::backend
