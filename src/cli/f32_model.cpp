#include "cli/f32_model.h"

#include "cli/engine.h"
#include "cli/resume_file.h"

#include <filesystem>
#include <fmt/format.h>
#include <stdexcept>
#include <unistd.h>

namespace cascade::cli {

llama_model_ptr load_in_f32(const std::string & path, int threads) {
    const std::string copy = fmt::format("{}/f32-{}.gguf", cache_directory(), ::getpid());
    llama_model_quantize_params params = llama_model_quantize_default_params();
    params.ftype = LLAMA_FTYPE_ALL_F32;
    params.allow_requantize = true;
    params.nthread = threads;
    const uint32_t failed = llama_model_quantize(path.c_str(), copy.c_str(), &params);
    std::error_code ignored;
    if (failed != 0) {
        std::filesystem::remove(copy, ignored);
        throw std::runtime_error("can't convert '" + path + "' to F32: make room in " + cache_directory() +
                                 ", or leave --f32 out");
    }
    llama_model_ptr model;
    try {
        model = load_model(copy, false);
    } catch (...) {
        std::filesystem::remove(copy, ignored);
        throw;
    }
    std::filesystem::remove(copy, ignored);
    return model;
}

std::string description_of(const llama_model * model) {
    char text[128] = {};
    llama_model_desc(model, text, sizeof(text));
    return text;
}

} // namespace cascade::cli
