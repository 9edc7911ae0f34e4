// A file's subspaces with their tensors, every number looked at.
#include "sidecar/decode.h"
#include "sidecar/on_disk.h"
#include "sidecar/sum.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>

namespace cascade::sidecar {

namespace {

constexpr size_t alignment = 64;
constexpr double unit_tolerance = 0.01; // of a basis vector's length, f16 included

bool is_finite_half(uint16_t bits) { return (bits & 0x7c00U) != 0x7c00U; }

// The half at this place of each block, from its end if negative. Halves themselves are blocks of one.
bool are_halves_finite(const TensorView & tensor, int place) {
    const size_t block = ggml_type_size(tensor.type);
    const size_t first = place < 0 ? block - static_cast<size_t>(-place) : static_cast<size_t>(place);
    bool finite = true;
    for (size_t at = first; at < tensor.size; at += block) {
        uint16_t bits = 0;
        std::memcpy(&bits, tensor.data + at, sizeof(bits));
        finite &= is_finite_half(bits);
    }
    return finite;
}

bool are_floats_finite(const TensorView & tensor) {
    bool finite = true;
    for (size_t at = 0; at < tensor.size; at += sizeof(float)) {
        uint32_t bits = 0;
        std::memcpy(&bits, tensor.data + at, sizeof(bits));
        finite &= (bits & 0x7f800000U) != 0x7f800000U;
    }
    return finite;
}

bool is_finite(const TensorView & tensor) {
    switch (tensor.type) {
    case GGML_TYPE_F32:
        return are_floats_finite(tensor);
    case GGML_TYPE_Q2_K: // a scale and a least value end a block
        return are_halves_finite(tensor, -2) && are_halves_finite(tensor, -4);
    case GGML_TYPE_Q3_K:
        return are_halves_finite(tensor, -2);
    default:
        return are_halves_finite(tensor, 0);
    }
}

// Gates subtract squared lengths: a longer vector would let them pass whatever comes.
bool has_unit_rows(const TensorView & basis) {
    std::vector<float> row(static_cast<size_t>(basis.columns));
    const size_t bytes = ggml_row_size(basis.type, basis.columns);
    for (int64_t i = 0; i < basis.rows; i++) {
        const std::byte * from = basis.data + (static_cast<size_t>(i) * bytes);
        if (basis.type == GGML_TYPE_F32) {
            std::memcpy(row.data(), from, bytes);
        } else {
            ggml_fp16_to_fp32_row(reinterpret_cast<const ggml_fp16_t *>(from), row.data(), basis.columns);
        }
        double sum = 0.0;
        for (const float value : row) {
            sum += static_cast<double>(value) * static_cast<double>(value);
        }
        if (!(std::fabs(std::sqrt(sum) - 1.0) <= unit_tolerance)) {
            return false;
        }
    }
    return true;
}

} // namespace

void SubspaceFile::Free::operator()(std::byte * of) const { std::free(of); } // NOLINT(cppcoreguidelines-no-malloc)

struct SubspaceReader {
    // `fill` reads the whole file.
    static Opened read(std::span<const std::byte> head_bytes, uint64_t size,
                       const std::function<bool(std::span<std::byte>)> & fill) {
        const Gguf first = walk(head_bytes, size); // before memory is taken for a file that is none
        if (first.objection != nullptr) {
            return { nullptr, first.objection };
        }
        auto file = std::make_shared<SubspaceFile>();
        const size_t room = (size + alignment - 1) / alignment * alignment;
        file->bytes.reset(static_cast<std::byte *>(std::aligned_alloc(alignment, std::max(room, alignment))));
        if (!file->bytes) {
            throw std::bad_alloc();
        }
        const std::span<std::byte> bytes(file->bytes.get(), size);
        if (!fill(bytes)) {
            return { nullptr, "can't be read" };
        }
        const Gguf whole = walk(bytes, size); // again: it may have changed since
        if (whole.objection != nullptr) {
            return { nullptr, whole.objection };
        }
        Head head = decode_head(whole);
        if (!head.sidecar) {
            return { nullptr, std::move(head.complaint) };
        }
        if (!head.subspaces.empty()) {
            DataSum sum;
            sum.add(bytes.subspan(whole.data_begin));
            if (sum.get() != head.data_checksum) {
                return { nullptr, "is damaged: its tensors' checksum is another one" };
            }
        }
        size_t tensor = 0;
        for (Subspace & subspace : head.subspaces) {
            for (const TensorView * view : subspace.tensors()) {
                const_cast<TensorView *>(view)->data = bytes.data() + head.offsets[tensor++]; // of our own subspace
            }
            const auto all = subspace.tensors();
            const bool finite =
                std::all_of(all.begin(), all.end(), [](const TensorView * view) { return is_finite(*view); });
            if (!finite || !has_unit_rows(subspace.basis)) {
                return { nullptr, "has numbers in " + subspace.input + " that no sidecar can have" };
            }
        }
        file->binding = std::move(*head.sidecar);
        file->made = std::move(head.calibration);
        file->all = std::move(head.subspaces);
        return { std::move(file), {} };
    }
};

Opened read_subspaces(std::span<const std::byte> bytes) {
    return SubspaceReader::read(bytes, bytes.size(), [&](std::span<std::byte> to) {
        std::copy(bytes.begin(), bytes.end(), to.begin());
        return true;
    });
}

Opened open_subspaces(const std::string & path) {
    OnDisk file(path);
    if (!file.complaint().empty()) {
        return { nullptr, file.complaint() };
    }
    const std::vector<std::byte> head = file.head();
    return SubspaceReader::read(head, file.size(), [&](std::span<std::byte> to) { return file.read(to); });
}

} // namespace cascade::sidecar
