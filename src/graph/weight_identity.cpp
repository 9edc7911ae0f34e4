#include "graph/weight_identity.h"

#include "graph/tensor.h"

#include "ggml-backend.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace cascade::graph {

namespace {

constexpr int64_t largest = int64_t{ 1 } << 20; // values: no norm is as long, whatever a graph from elsewhere claims

bool is_readable(const ggml_tensor * weight) {
    const ggml_tensor * root = root_of(weight);
    return weight->data != nullptr && root != nullptr &&
           (root->buffer == nullptr || ggml_backend_buffer_is_host(root->buffer));
}

class Hash { // of words: a graph is read between two tokens
  public:
    void add(uint64_t word) {
        value = (value ^ word) * 1099511628211U;
        value ^= value >> 29U;
    }
    void add(const void * data, size_t size) {
        add(size);
        for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
            uint64_t word = 0;
            std::memcpy(&word, static_cast<const char *>(data) + at, std::min(sizeof(word), size - at));
            add(word);
        }
    }
    uint64_t get() const { return value; }

  private:
    uint64_t value = 14695981039346656037U;
};

} // namespace

std::optional<uint64_t> identity_of(const ggml_tensor * weight) {
    if (weight == nullptr || weight->type != GGML_TYPE_F32 || ggml_n_dims(weight) != 1 || weight->ne[0] <= 0 ||
        weight->ne[0] > largest || !ggml_is_contiguous(weight) || !is_readable(weight)) {
        return std::nullopt;
    }
    const std::string_view name(weight->name, strnlen(weight->name, sizeof(weight->name)));
    Hash hash;
    hash.add(name.data(), name.size());
    hash.add(static_cast<uint64_t>(weight->type));
    hash.add(static_cast<uint64_t>(weight->ne[0]));
    hash.add(weight->data, ggml_nbytes(weight));
    return hash.get() == 0 ? 1 : hash.get();
}

} // namespace cascade::graph
