// The costs of attention on this machine: read from the file where an earlier program left them, measured where nobody
// did, shared by all backends of the process.
#pragma once

#include "backend/cost_meter.h"

namespace cascade::backend {

// nullptr: they can't be measured. The table stays where it is. Measures for a fraction of a second, once. `threads`:
// as many as the engine computes with (threads_of).
const CostTable * machine_costs(ggml_backend_t engine, const MeasuredShape & shape, int threads,
                                const std::string & given_file);

} // namespace cascade::backend
