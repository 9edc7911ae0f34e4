#include "backend/backend.h"

#include "backend/engine.h"
#include "backend/log.h"
#include "backend/session.h"

#include <memory>

namespace cascade::backend {

namespace {

// A CPU backend that stands in front of another one: same kind (guid), same device and same context, so that the CPU's
// own functions (threads, abort callback, thread pool) work on it; only what computes a graph is ours.
struct CascadeBackend : ggml_backend {
    ggml_backend_t engine;
    Session session;

    CascadeBackend(ggml_backend_t used_engine, const Settings & settings)
        : ggml_backend(*used_engine), engine(used_engine), session(used_engine, settings) {
        iface.get_name = [](ggml_backend_t) { return "Cascade"; };
        iface.free = [](ggml_backend_t self) { delete static_cast<CascadeBackend *>(self); };
        iface.graph_plan_create = nullptr; // a plan would bypass graph_compute
        iface.graph_plan_free = nullptr;
        iface.graph_plan_update = nullptr;
        iface.graph_plan_compute = nullptr;
        iface.graph_compute = [](ggml_backend_t self, ggml_cgraph * graph) {
            return static_cast<CascadeBackend *>(self)->session.compute(graph);
        };
        iface.graph_optimize = [](ggml_backend_t self, ggml_cgraph * graph,
                                  ggml_backend_graph_optimize_params * params) {
            static_cast<CascadeBackend *>(self)->session.keep_sources(graph, params);
        };
    }
    ~CascadeBackend() { ggml_backend_free(engine); }
    CascadeBackend(const CascadeBackend &) = delete;
    CascadeBackend & operator=(const CascadeBackend &) = delete;
};

} // namespace

ggml_backend_t make_backend(const Settings & settings) {
    const ggml_backend_dev_t cpu = cpu_device();
    ggml_backend_t engine = cpu != nullptr ? ggml_backend_dev_init(cpu, nullptr) : nullptr;
    if (engine == nullptr) {
        say_once(Notice::no_cpu, "the engine has no CPU device to compute on");
        return nullptr;
    }
    try {
        return std::make_unique<CascadeBackend>(engine, settings).release();
    } catch (...) {
        // the plain CPU backend computes the same, only without us
        say_once(Notice::fallback, "out of memory: the engine runs without cascade");
        return engine;
    }
}

} // namespace cascade::backend
