// Sidecars for tests, and GGUF files made by hand, whole and otherwise.
#pragma once

#include "sidecar/sidecar.h"

#include <cstring>

namespace cascade::sidecar::test {

using Bytes = std::vector<std::byte>;

inline Sidecar sample() {
    Sidecar sidecar;
    sidecar.model_sha256 = std::string(60, 'a') + "0123";
    sidecar.fingerprints = { 11, 12, 0, ~uint64_t{ 0 } };
    sidecar.text = "wiki.test.raw";
    sidecar.date = "2026-01-31";
    sidecar.context = 2048;
    sidecar.scored = 4092;
    sidecar.near = { { 0.01F, 0.02F, 0.0F, 1.0F }, 0.004F, 0.005F, 0.0055F, 0.98F, 0.975F, 0.97F, 0.4F };
    sidecar.balanced = { { 0.1F, 0.2F, 0.3F, 0.4F }, 0.02F, 0.025F, 0.03F, 0.95F, 0.94F, 0.93F, 0.2F };
    return sidecar;
}

// A GGUF file, value by value, with whatever a hostile hand would write.
class HandMade {
  public:
    explicit HandMade(uint64_t keys, uint32_t version = 3, uint64_t tensors = 0) {
        raw("GGUF", 4).number(version).number(tensors).number(keys);
    }
    HandMade & raw(const void * data, size_t size) {
        const auto * from = static_cast<const std::byte *>(data);
        bytes.insert(bytes.end(), from, from + size);
        return *this;
    }
    template <typename Number>
    HandMade & number(Number value) {
        return raw(&value, sizeof(value));
    }
    HandMade & string(const std::string & text) { return number<uint64_t>(text.size()).raw(text.data(), text.size()); }
    HandMade & key(const std::string & name, uint32_t type) { return string(name).number(type); }

    // Filled up to the alignment, as the writer does.
    Bytes padded() const {
        Bytes all = bytes;
        all.resize((all.size() + 31) / 32 * 32);
        return all;
    }
    const Bytes & as_is() const { return bytes; }

  private:
    Bytes bytes;
};

} // namespace cascade::sidecar::test
