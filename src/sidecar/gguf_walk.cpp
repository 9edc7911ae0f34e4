#include "sidecar/gguf_walk.h"

#include "ggml.h"
#include "gguf.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace cascade::sidecar {

namespace {

constexpr const char * cut_short = "is cut short or damaged";
constexpr uint64_t least_tensor_bytes = 33; // of a description: a name of one letter, one dimension

size_t size_of(uint32_t type) {
    switch (type) {
    case GGUF_TYPE_UINT8:
    case GGUF_TYPE_INT8:
    case GGUF_TYPE_BOOL:
        return 1;
    case GGUF_TYPE_UINT16:
    case GGUF_TYPE_INT16:
        return 2;
    case GGUF_TYPE_UINT32:
    case GGUF_TYPE_INT32:
    case GGUF_TYPE_FLOAT32:
        return 4;
    case GGUF_TYPE_UINT64:
    case GGUF_TYPE_INT64:
    case GGUF_TYPE_FLOAT64:
        return 8;
    default:
        return 0;
    }
}

bool is_known_tensor_type(uint32_t type) {
    switch (type) {
    case GGML_TYPE_F32:
    case GGML_TYPE_F16:
    case GGML_TYPE_Q8_0:
    case GGML_TYPE_Q4_0:
    case GGML_TYPE_Q3_K:
    case GGML_TYPE_Q2_K:
        return true;
    default:
        return false;
    }
}

uint64_t padded(uint64_t size) {
    return (size + GGUF_DEFAULT_ALIGNMENT - 1) / GGUF_DEFAULT_ALIGNMENT * GGUF_DEFAULT_ALIGNMENT;
}

class Walk {
  public:
    Walk(std::span<const std::byte> head, uint64_t size_of_file) : bytes(head), file_size(size_of_file) {}

    Gguf result() {
        found.objection = objection();
        found.needs_more = found.objection == cut_short && bytes.size() < file_size;
        return std::move(found);
    }

  private:
    const char * objection() {
        if (bytes.size() < 4 || std::memcmp(bytes.data(), GGUF_MAGIC, 4) != 0) {
            return "is no GGUF file";
        }
        at = 4;
        const auto version = number<uint32_t>();
        const auto tensors = number<uint64_t>();
        const auto keys = number<uint64_t>();
        if (!version || !tensors || !keys) {
            return cut_short;
        }
        if (*version != GGUF_VERSION) {
            return "is of another GGUF version, or of the other byte order";
        }
        if (*tensors > most_tensors || *keys > most_keys) {
            return "is a GGUF file, but no sidecar";
        }
        found.values.reserve(*keys);
        for (uint64_t key = 0; key < *keys; key++) {
            if (const char * bad = pair()) {
                return bad;
            }
        }
        if (*tensors > (bytes.size() - at) / least_tensor_bytes) {
            return cut_short;
        }
        found.tensors.reserve(*tensors);
        for (uint64_t i = 0; i < *tensors; i++) {
            if (const char * bad = tensor()) {
                return bad;
            }
        }
        if (has_a_name_twice()) {
            return "has a tensor twice";
        }
        return ends_well() ? nullptr : cut_short;
    }

    template <typename Number>
    std::optional<Number> number() {
        if (bytes.size() - at < sizeof(Number)) {
            return std::nullopt;
        }
        Number value = 0;
        std::memcpy(&value, bytes.data() + at, sizeof(Number));
        at += sizeof(Number);
        return value;
    }

    std::string_view text_at(uint64_t length) {
        const std::string_view text(reinterpret_cast<const char *>(bytes.data() + at), length);
        at += length;
        return text;
    }

    std::optional<std::string_view> string(uint64_t longest) {
        const auto length = number<uint64_t>();
        if (!length || *length > longest || *length > bytes.size() - at) {
            return std::nullopt;
        }
        return text_at(*length);
    }

    const char * pair() {
        GgufValue pair;
        const auto key = string(longest_string);
        const auto type = number<uint32_t>();
        if (!key || key->empty() || !type) {
            return cut_short;
        }
        if (*key == GGUF_KEY_GENERAL_ALIGNMENT) {
            return "names an alignment of its own";
        }
        if (std::any_of(found.values.begin(), found.values.end(),
                        [&](const GgufValue & other) { return other.key == *key; })) {
            return "has a value twice";
        }
        pair.key = *key;
        pair.type = *type;
        if (!read_value(pair)) {
            return cut_short;
        }
        found.values.push_back(pair);
        return nullptr;
    }

    bool read_value(GgufValue & to) {
        if (to.type == GGUF_TYPE_STRING) {
            const auto text = string(longest_string);
            to.data = text.value_or("");
            return text.has_value();
        }
        to.array = to.type == GGUF_TYPE_ARRAY;
        if (to.array) {
            const auto of = number<uint32_t>();
            const auto length = number<uint64_t>();
            if (!of || !length) {
                return false;
            }
            to.type = *of;
            to.count = *length;
        }
        const size_t size = size_of(to.type);
        if (size == 0 || to.count > (bytes.size() - at) / size) {
            return false;
        }
        to.data = text_at(to.count * size);
        return true;
    }

    const char * tensor() {
        const auto name = string(GGML_MAX_NAME - 1);
        const auto dimensions = number<uint32_t>();
        if (!name || name->empty() || !dimensions || *dimensions < 1) {
            return cut_short;
        }
        if (*dimensions > 2) {
            return "has a tensor of more than two dimensions";
        }
        const auto columns = number<uint64_t>();
        const auto rows = *dimensions == 2 ? number<uint64_t>() : uint64_t{ 1 };
        const auto type = number<uint32_t>();
        const auto offset = number<uint64_t>();
        if (!columns || !rows || !type || !offset) {
            return cut_short;
        }
        return add_tensor({ *name, *type, *columns, *rows, *offset, 0 });
    }

    // Tensors lie one behind the other, which leaves each a single place: none overlaps another or is out of line.
    const char * add_tensor(GgufTensor tensor) {
        if (!is_known_tensor_type(tensor.type)) {
            return "has a tensor of a type that no sidecar has";
        }
        const auto type = static_cast<ggml_type>(tensor.type);
        const auto block = static_cast<uint64_t>(ggml_blck_size(type));
        if (tensor.columns == 0 || tensor.columns > longest_side || tensor.rows == 0 || tensor.rows > longest_side ||
            tensor.columns % block != 0) {
            return "has a tensor of a shape that no sidecar has";
        }
        if (tensor.offset != next_offset) {
            return "has a tensor out of its place";
        }
        tensor.size = tensor.columns / block * ggml_type_size(type) * tensor.rows; // below 2^50
        next_offset += padded(tensor.size);
        if (next_offset > file_size) {
            return "has a tensor that ends beyond the file";
        }
        found.tensors.push_back(tensor);
        return nullptr;
    }

    bool has_a_name_twice() const {
        std::vector<std::string_view> names;
        names.reserve(found.tensors.size());
        for (const GgufTensor & tensor : found.tensors) {
            names.push_back(tensor.name);
        }
        std::sort(names.begin(), names.end());
        return std::adjacent_find(names.begin(), names.end()) != names.end();
    }

    // The writer fills up to the alignment with zeros, and nothing follows the last tensor.
    bool ends_well() {
        found.data_begin = padded(at);
        found.data_end = found.data_begin + next_offset;
        if (found.data_end != file_size || found.data_begin > bytes.size()) {
            return false;
        }
        for (GgufTensor & tensor : found.tensors) {
            tensor.offset += found.data_begin;
        }
        return std::all_of(bytes.data() + at, bytes.data() + found.data_begin,
                           [](std::byte byte) { return byte == std::byte{ 0 }; });
    }

    std::span<const std::byte> bytes;
    uint64_t file_size;
    size_t at = 0;
    uint64_t next_offset = 0; // of a tensor, from the first
    Gguf found;
};

} // namespace

Gguf walk(std::span<const std::byte> head, uint64_t file_size) { return Walk(head, file_size).result(); }

} // namespace cascade::sidecar
