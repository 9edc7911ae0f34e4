#include "sidecar/gguf_walk.h"

#include "gguf.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string_view>

namespace cascade::sidecar {

namespace {

constexpr const char * cut_short = "is cut short or damaged";

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

class Walk {
  public:
    explicit Walk(std::span<const std::byte> all) : bytes(all) {}

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
        if (*tensors != 0 || *keys > most_keys) {
            return "is a GGUF file, but no sidecar";
        }
        for (uint64_t key = 0; key < *keys; key++) {
            if (const char * bad = pair()) {
                return bad;
            }
        }
        return padded_end() ? nullptr : cut_short;
    }

  private:
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

    std::optional<std::string_view> string() {
        const auto length = number<uint64_t>();
        if (!length || *length > longest_string || *length > bytes.size() - at) {
            return std::nullopt;
        }
        const std::string_view text(reinterpret_cast<const char *>(bytes.data() + at), *length);
        at += *length;
        return text;
    }

    const char * pair() {
        const auto key = string();
        const auto type = number<uint32_t>();
        if (!key || key->empty() || !type) {
            return cut_short;
        }
        if (*key == GGUF_KEY_GENERAL_ALIGNMENT) {
            return "names an alignment of its own";
        }
        const auto known = std::span(seen).first(count);
        if (std::find(known.begin(), known.end(), *key) != known.end()) {
            return "has a value twice";
        }
        seen[count++] = *key;
        return value(*type) ? nullptr : cut_short;
    }

    bool value(uint32_t type) {
        if (type == GGUF_TYPE_STRING) {
            return string().has_value();
        }
        uint64_t values = 1;
        if (type == GGUF_TYPE_ARRAY) {
            const auto of = number<uint32_t>();
            const auto length = number<uint64_t>();
            if (!of || !length) {
                return false;
            }
            type = *of;
            values = *length;
        }
        const size_t size = size_of(type);
        if (size == 0 || values > (bytes.size() - at) / size) {
            return false;
        }
        at += values * size;
        return true;
    }

    // The writer fills the file up to the alignment with zeros.
    bool padded_end() const {
        const size_t end = (at + GGUF_DEFAULT_ALIGNMENT - 1) / GGUF_DEFAULT_ALIGNMENT * GGUF_DEFAULT_ALIGNMENT;
        if (bytes.size() != end) {
            return false;
        }
        for (size_t i = at; i < end; i++) {
            if (bytes[i] != std::byte{ 0 }) {
                return false;
            }
        }
        return true;
    }

    std::span<const std::byte> bytes;
    size_t at = 0;
    std::array<std::string_view, most_keys> seen; // keys
    size_t count = 0;                             // of them
};

} // namespace

const char * objection_to(std::span<const std::byte> bytes) { return Walk(bytes).objection(); }

} // namespace cascade::sidecar
