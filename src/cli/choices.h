// What a flag's names stand for.
#pragma once

#include "ggml.h"

#include <map>
#include <string>
#include <vector>

namespace cascade::cli {

template <typename Value>
using Choices = std::map<std::string, Value>;

template <typename Value>
std::vector<std::string> names_of(const Choices<Value> & known) {
    std::vector<std::string> names;
    names.reserve(known.size());
    for (const auto & [name, value] : known) {
        names.push_back(name);
    }
    return names;
}

// Types of a cache, as llama.cpp's programs take them.
inline const Choices<ggml_type> & cache_types() {
    static const Choices<ggml_type> known = {
        { "f16", GGML_TYPE_F16 },   { "bf16", GGML_TYPE_BF16 }, { "f32", GGML_TYPE_F32 },
        { "q8_0", GGML_TYPE_Q8_0 }, { "q4_0", GGML_TYPE_Q4_0 }, { "q4_1", GGML_TYPE_Q4_1 },
        { "q5_0", GGML_TYPE_Q5_0 }, { "q5_1", GGML_TYPE_Q5_1 }, { "iq4_nl", GGML_TYPE_IQ4_NL },
    };
    return known;
}

} // namespace cascade::cli
