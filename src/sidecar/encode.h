// The part of writing that all sidecars share.
#pragma once

#include "sidecar/sidecar.h"

struct gguf_context;

namespace cascade::sidecar {

void set_sidecar(gguf_context * file, const Sidecar & sidecar);

} // namespace cascade::sidecar
