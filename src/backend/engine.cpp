#include "backend/engine.h"

#include <algorithm>

namespace cascade::backend {

namespace {

// git abbreviates a commit differently from clone to clone.
bool same_commit(const std::string & a, const std::string & b) {
    constexpr size_t shortest = 7;
    const size_t length = std::min(a.size(), b.size());
    if (a == b) {
        return true;
    }
    const auto is_hash = [](const std::string & text) {
        return text.find_first_not_of("0123456789abcdef") == std::string::npos;
    };
    return length >= shortest && is_hash(a) && is_hash(b) && a.compare(0, length, b, 0, length) == 0;
}

} // namespace

ggml_backend_dev_t cpu_device() { return ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU); }

void * cpu_function(const char * name) {
    const ggml_backend_dev_t device = cpu_device();
    return device != nullptr ? ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(device), name) : nullptr;
}

std::string engine_mismatch(const std::string & version, const std::string & commit) {
    if (version == CASCADE_ENGINE_VERSION && same_commit(commit, CASCADE_ENGINE_COMMIT)) {
        return {};
    }
    return "not loaded: built for ggml " CASCADE_ENGINE_VERSION " (" CASCADE_ENGINE_COMMIT "), but this engine is " +
           version + " (" + commit + "); rebuild with -DCASCADE_ENGINE_DIR=<its source tree>";
}

} // namespace cascade::backend
