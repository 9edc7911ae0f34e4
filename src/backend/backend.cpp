#include "backend/backend.h"

#include "backend/engine.h"
#include "backend/log.h"
#include "backend/session.h"

#include "ggml-cpp.h"

namespace cascade::backend {

namespace {

// A CPU backend that stands in front of another one: same kind (guid), same device and same context, so that the CPU's
// own functions (threads, abort callback, thread pool) work on it; only what computes a graph is ours.
struct CascadeBackend : ggml_backend {
    ggml_backend_ptr engine;
    std::shared_ptr<const Settings> settings;
    Session session; // goes before the engine does

    CascadeBackend(ggml_backend_ptr used_engine, std::shared_ptr<const Settings> used_settings)
        : ggml_backend(*used_engine), engine(std::move(used_engine)), settings(std::move(used_settings)),
          session(engine.get(), *settings) {
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
};

} // namespace

ggml_backend_t make_backend(std::shared_ptr<const Settings> settings) {
    try {
        ggml_backend_ptr engine(ggml_backend_dev_init(cpu_device(), nullptr));
        return engine ? new CascadeBackend(std::move(engine), std::move(settings)) : nullptr;
    } catch (...) {
        say_once(Notice::fallback, "out of memory: no backend could be made");
        return nullptr;
    }
}

Session & session_of(ggml_backend_t backend) { return static_cast<CascadeBackend *>(backend)->session; }

} // namespace cascade::backend
