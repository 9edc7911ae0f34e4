// A GGUF file's values and tensors as views into its bytes, found in one pass that trusts none of them. The engine's
// reader checks lengths too, but compares each key with all before it, takes an alignment that the file names, and logs
// what it doesn't like; here a file is refused in silence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace cascade::sidecar {

constexpr uint64_t most_keys = 64;
constexpr uint64_t longest_string = 1024;
constexpr uint64_t most_tensors = uint64_t{ 1 } << 16U;
constexpr uint64_t longest_side = uint64_t{ 1 } << 24U; // of a tensor

struct GgufValue {
    std::string_view key;
    uint32_t type = 0;     // gguf_type; of an array that of its values
    bool array = false;    // never of texts or arrays
    uint64_t count = 1;    // of values
    std::string_view data; // their bytes, or the text
};

struct GgufTensor { // of at most two dimensions; f32, f16, q8_0, q4_0, q3_K or q2_K
    std::string_view name;
    uint32_t type = 0; // ggml_type
    uint64_t columns = 0;
    uint64_t rows = 0;
    uint64_t offset = 0; // from the file's beginning
    uint64_t size = 0;   // bytes, without the padding behind them
};

struct Gguf {
    std::vector<GgufValue> values;
    std::vector<GgufTensor> tensors; // one behind the other in the file, as they are listed here
    uint64_t data_begin = 0;
    uint64_t data_end = 0;            // the file's
    const char * objection = nullptr; // why it is no such file; nullptr: it is
    bool needs_more = false;          // it may be one, but the head ends too early
};

// `head` is the file's beginning with all values and the tensors' descriptions at least; the tensors' bytes are not
// looked at. Throws std::bad_alloc at most, and allocates a few times what is really there.
Gguf walk(std::span<const std::byte> head, uint64_t file_size);

} // namespace cascade::sidecar
