// A model opened to look at its graph: the engine builds the graph for a few tokens, and computes none of it.
#pragma once

#include "ggml.h"
#include "llama-cpp.h"

#include <memory>
#include <string>
#include <vector>

namespace cascade::cli {

struct ProbeOptions {
    std::string model;
    llama_flash_attn_type flash_attention = LLAMA_FLASH_ATTN_TYPE_AUTO;
    ggml_type cache_type_k = GGML_TYPE_F16;
    int tokens = 4;
};

struct Probe {
    llama_model_ptr model;
    llama_context_ptr context;
    std::vector<ggml_tensor *> nodes; // live as long as the context computes nothing else
    std::string architecture;
    int sliding_window = 0;
};

// Throws std::runtime_error with a message for a person.
std::unique_ptr<Probe> probe_model(const ProbeOptions & options);

} // namespace cascade::cli
