// The plugin's front: the registry entry and its one device, "Cascade", of type ACCEL.
//
// llama.cpp gives ACCEL devices precedence over the CPU for every op they support. Ours supports what the CPU device
// does, in all of its buffer types (repacked weights included), so a context's whole graph arrives in one piece.
#include "backend/backend.h"
#include "backend/engine.h"
#include "backend/log.h"
#include "backend/stats.h"
#include "cascade/settings.h"

#include "ggml-backend-impl.h"

#include <cstdlib>
#include <cstring>
#include <memory>

namespace cascade::backend {

namespace {

// Read for each context anew, so that a program can have several in different modes.
Settings settings() {
    std::vector<std::string> complaints;
    Settings found = settings_from([](const char * variable) { return std::getenv(variable); }, complaints);
    std::string line;
    for (const std::string & complaint : complaints) {
        line += line.empty() ? "" : "; ";
        line += complaint;
    }
    if (!line.empty()) {
        say_once(Notice::settings, line);
    }
    return found;
}

const char * name_of_device(ggml_backend_dev_t) { return "Cascade"; }

const char * description_of_device(ggml_backend_dev_t) { return "cascade.cpp on the engine's CPU"; }

// None of its own: it works in the CPU's.
void memory_of_device(ggml_backend_dev_t, size_t * free, size_t * total) { *free = *total = 0; }

enum ggml_backend_dev_type type_of_device(ggml_backend_dev_t) { return GGML_BACKEND_DEVICE_TYPE_ACCEL; }

void props_of_device(ggml_backend_dev_t device, ggml_backend_dev_props * props) {
    ggml_backend_dev_get_props(cpu_device(), props);
    props->name = name_of_device(device);
    props->description = description_of_device(device);
    props->type = type_of_device(device);
    props->memory_free = 0;
    props->memory_total = 0;
}

ggml_backend_t backend_of_device(ggml_backend_dev_t, const char *) {
    try {
        return make_backend(std::make_shared<const Settings>(settings()));
    } catch (...) {
        say_once(Notice::fallback, "out of memory: no backend could be made");
        return nullptr;
    }
}

ggml_backend_buffer_type_t buffer_type_of_device(ggml_backend_dev_t) {
    return ggml_backend_dev_buffer_type(cpu_device());
}

ggml_backend_buffer_t buffer_from_pointer(ggml_backend_dev_t, void * pointer, size_t size, size_t largest_tensor) {
    return ggml_backend_dev_buffer_from_host_ptr(cpu_device(), pointer, size, largest_tensor);
}

bool supports_op(ggml_backend_dev_t, const ggml_tensor * op) { return ggml_backend_dev_supports_op(cpu_device(), op); }

bool supports_buffer_type(ggml_backend_dev_t, ggml_backend_buffer_type_t type) {
    return ggml_backend_dev_supports_buft(cpu_device(), type);
}

ggml_backend_device make_device(ggml_backend_reg_t registry) {
    ggml_backend_device device = {};
    device.iface.get_name = name_of_device;
    device.iface.get_description = description_of_device;
    device.iface.get_memory = memory_of_device;
    device.iface.get_type = type_of_device;
    device.iface.get_props = props_of_device;
    device.iface.init_backend = backend_of_device;
    device.iface.get_buffer_type = buffer_type_of_device;
    device.iface.buffer_from_host_ptr = buffer_from_pointer;
    device.iface.supports_op = supports_op;
    device.iface.supports_buft = supports_buffer_type;
    device.reg = registry;
    return device;
}

const char * name_of_registry(ggml_backend_reg_t) { return "Cascade"; }

// None in mode off: what has no device claims nothing.
size_t count_devices(ggml_backend_reg_t) { return settings().mode == Mode::off ? 0 : 1; }

ggml_backend_dev_t device_of_registry(ggml_backend_reg_t registry, size_t) {
    static ggml_backend_device device = make_device(registry);
    return &device;
}

// Our backend is a CPU backend, so the CPU's functions serve it as they are. One is our own: `void ()`, docs/plugin.md.
void * function_of_registry(ggml_backend_reg_t, const char * name) {
    if (std::strcmp(name, "cascade_write_summaries") == 0) {
        return reinterpret_cast<void *>(&Stats::write_summaries);
    }
    const bool shared = std::strcmp(name, "ggml_backend_set_n_threads") == 0 ||
                        std::strcmp(name, "ggml_backend_set_abort_callback") == 0;
    return shared ? cpu_function(name) : nullptr;
}

ggml_backend_reg_t registry() {
    static ggml_backend_reg instance = {
        GGML_BACKEND_API_VERSION,
        { name_of_registry, count_devices, device_of_registry, function_of_registry },
        nullptr,
    };
    return &instance;
}

} // namespace

} // namespace cascade::backend

// What the engine looks up in the library; nullptr: it goes on without us.
extern "C" __attribute__((visibility("default"))) ggml_backend_reg_t ggml_backend_init() {
    using namespace cascade::backend;
    try {
        const std::string mismatch = engine_mismatch(ggml_version(), ggml_commit());
        if (!mismatch.empty()) {
            say_once(Notice::engine, mismatch);
            return nullptr;
        }
        settings(); // complaints come now, not in the middle of a computation
        if (cpu_device() == nullptr) {
            say_once(Notice::no_cpu, "not loaded: the engine has no CPU device; load its CPU backend first");
            return nullptr;
        }
        return registry();
    } catch (...) {
        say_once(Notice::engine, "not loaded: out of memory");
        return nullptr;
    }
}
