// A GGUF file's values by name and type; the first that isn't there, or is something else, is remembered.
#pragma once

#include "sidecar/gguf_walk.h"

#include "gguf.h"

#include <algorithm>
#include <string>
#include <vector>

namespace cascade::sidecar {

class Values {
  public:
    explicit Values(const Gguf & of) : file(of) {}

    uint32_t u32(const std::string & name) { return number<uint32_t>(name, GGUF_TYPE_UINT32); }
    uint64_t u64(const std::string & name) { return number<uint64_t>(name, GGUF_TYPE_UINT64); }
    float f32(const std::string & name) { return number<float>(name, GGUF_TYPE_FLOAT32); }
    std::string text(const std::string & name) {
        const GgufValue * value = find(name, GGUF_TYPE_STRING, false);
        return value == nullptr ? "" : std::string(value->data);
    }
    template <typename Number>
    std::vector<Number> array(const std::string & name, gguf_type type, uint64_t most) {
        const GgufValue * value = find(name, type, true);
        if (value == nullptr || value->count > most) {
            miss(name);
            return {};
        }
        std::vector<Number> numbers(value->count);
        value->data.copy(reinterpret_cast<char *>(numbers.data()), value->data.size());
        return numbers;
    }
    bool has(const std::string & name) const { return position(name) != file.values.end(); }
    const std::string & missed() const { return first_missed; }

  private:
    template <typename Number>
    Number number(const std::string & name, gguf_type type) {
        const GgufValue * value = find(name, type, false);
        Number result = 0;
        if (value != nullptr) {
            value->data.copy(reinterpret_cast<char *>(&result), sizeof(Number));
        }
        return result;
    }
    std::vector<GgufValue>::const_iterator position(const std::string & name) const {
        return std::find_if(file.values.begin(), file.values.end(),
                            [&](const GgufValue & value) { return value.key == name; });
    }
    const GgufValue * find(const std::string & name, gguf_type type, bool array) {
        const auto found = position(name);
        if (found != file.values.end() && found->type == static_cast<uint32_t>(type) && found->array == array) {
            return &*found;
        }
        miss(name);
        return nullptr;
    }
    void miss(const std::string & name) { first_missed = first_missed.empty() ? name : first_missed; }

    const Gguf & file;
    std::string first_missed;
};

} // namespace cascade::sidecar
