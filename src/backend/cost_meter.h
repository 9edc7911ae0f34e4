// Measures what one attention of a model costs on this machine: by the engine's op, by our exact kernels and on a
// cover, each on the engine's own threads. A fraction of a second for a model.
#pragma once

#include "cascade/attention.h"
#include "plan/costs.h"

#include "ggml-backend-impl.h"

#include <optional>

namespace cascade::backend {

struct MeasuredShape {
    int64_t heads = 0;
    int64_t kv_heads = 0;
    int64_t key_size = 0;
    int64_t value_size = 0;
    ggml_type key_type = GGML_TYPE_F16;
    ggml_type value_type = GGML_TYPE_F16;

    std::string key(int threads) const;
};

// Threads that the engine would compute with now; 0: it doesn't compute.
int threads_of(ggml_backend_t engine);

// nullopt: it could not be measured, since the engine was stopped or memory ran out. Throws std::bad_alloc at most.
std::optional<CostTable> measure_costs(ggml_backend_t engine, const MeasuredShape & shape, int threads);

} // namespace cascade::backend
