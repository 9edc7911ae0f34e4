// Sidecar files out of a fuzzer's bytes: refused with a reason, or read to what would be written again just so.
//
// The first byte says what the others are: a file as it is; or a good file, some of its bytes changed, so that most of
// what comes out has the right shape; with subspaces or without. Where the changed file's description still stands, its
// checksums are made good too, so that what they would hide is looked at.
#include "byte_reader.h"
#include "sidecar/decode.h"
#include "sidecar/keys.h"
#include "sidecar/sum.h"
#include "sidecar/write_subspaces.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>

namespace {

using namespace cascade::sidecar;
using cascade::fuzz::ByteReader;
using Bytes = std::vector<std::byte>;

void require(bool holds, const char * what) {
    if (!holds) {
        std::fprintf(stderr, "does not hold: %s\n", what);
        std::abort();
    }
}

std::vector<float> any_floats(ByteReader & reader, size_t count) {
    std::vector<float> values(count);
    for (float & value : values) {
        value = reader.below(4) == 0 ? reader.any_float() : static_cast<float>(reader.byte()) / 255.0F;
    }
    return values;
}

Tuned any_tuned(ByteReader & reader, size_t layers) {
    Tuned tuned;
    tuned.epsilons = any_floats(reader, reader.below(8) == 0 ? reader.byte() : layers);
    for (const key::Figure & figure : key::figures) {
        tuned.*figure.value = any_floats(reader, 1).front();
    }
    return tuned;
}

std::string any_text(ByteReader & reader, size_t length) {
    std::string text(length, 'a');
    for (char & c : text) {
        c = static_cast<char>(reader.below(64) == 0 ? reader.byte() : 'a' + reader.below(6));
    }
    return text;
}

// Its checksum is right, whatever else isn't.
Sidecar any_sidecar(ByteReader & reader) {
    Sidecar sidecar;
    sidecar.fingerprints.resize(static_cast<size_t>(reader.below(40)));
    for (uint64_t & fingerprint : sidecar.fingerprints) {
        fingerprint = reader.byte();
    }
    sidecar.model_sha256 = any_text(reader, reader.below(8) == 0 ? reader.byte() : 64);
    sidecar.text = any_text(reader, reader.byte());
    sidecar.date = any_text(reader, 10);
    sidecar.context = reader.byte();
    sidecar.near = any_tuned(reader, sidecar.fingerprints.size());
    sidecar.balanced = any_tuned(reader, sidecar.fingerprints.size());
    return sidecar;
}

void change(Bytes & bytes, ByteReader & reader) {
    for (int64_t changes = reader.below(8); changes > 0; changes--) {
        bytes[static_cast<size_t>(reader.below(static_cast<int64_t>(bytes.size())))] = std::byte{ reader.byte() };
    }
    if (reader.below(8) == 0) {
        bytes.resize(static_cast<size_t>(reader.below(static_cast<int64_t>(bytes.size()) + 64)));
    }
}

void check(const Bytes & bytes) {
    const Loaded loaded = decode(bytes);
    require(loaded.sidecar.has_value() == loaded.complaint.empty(), "a sidecar or a complaint");
    if (!loaded.sidecar) {
        return;
    }
    const Sidecar & sidecar = *loaded.sidecar;
    for (const Tuned * tuned : { &sidecar.near, &sidecar.balanced }) {
        require(tuned->epsilons.empty() || tuned->epsilons.size() == sidecar.fingerprints.size(), "one for each layer");
        for (const float epsilon : tuned->epsilons) {
            require(epsilon >= 0.0F && epsilon <= 1.0F, "epsilons are from 0 to 1");
        }
    }
    const Loaded again = decode(encode(sidecar));
    require(again.sidecar == loaded.sidecar, "what was read is written and read again");
}

struct AnySubspaces {
    std::vector<Subspace> all;
    std::deque<Bytes> data;

    TensorView tensor(ByteReader & reader, ggml_type type, int64_t columns, int64_t rows) {
        std::vector<float> values(static_cast<size_t>(columns * rows), 1.0F / std::sqrt(static_cast<float>(columns)));
        if (ggml_blck_size(type) == 1 && reader.below(8) == 0) { // rounding to blocks takes numbers alone
            values[static_cast<size_t>(reader.below(columns * rows))] = reader.any_float();
        }
        Bytes & bytes = data.emplace_back(ggml_row_size(type, columns) * static_cast<size_t>(rows));
        ggml_quantize_chunk(type, values.data(), bytes.data(), 0, rows, columns, nullptr);
        return { type, columns, rows, bytes.data(), bytes.size() };
    }
};

// Of a sound shape, whatever their numbers are.
AnySubspaces any_subspaces(ByteReader & reader) {
    static constexpr ggml_type types[] = { GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0 };
    AnySubspaces made;
    const int64_t count = reader.below(4);
    for (int64_t i = 0; i < count; i++) {
        Subspace & added = made.all.emplace_back();
        const ggml_type type = types[reader.below(4)];
        added.layer = static_cast<int>(i);
        added.input = "blk." + std::to_string(i) + ".a";
        added.k = static_cast<uint32_t>(ggml_blck_size(type));
        const bool rough = reader.below(3) == 0;
        added.width =
            rough ? 32 * static_cast<uint32_t>(reader.between(1, 3)) : added.k + static_cast<uint32_t>(reader.below(9));
        added.figures.rough_error = rough ? 0.2F : 0.0F;
        added.basis = made.tensor(reader, types[reader.below(2)], added.width, added.k);
        for (int64_t j = reader.below(3); j >= 0; j--) {
            const std::string weight = "blk." + std::to_string(i) + "." + static_cast<char>('c' - j) + ".weight";
            Image & image = added.images.emplace_back();
            image.weight = weight;
            image.tensor = made.tensor(reader, type, added.k, reader.between(1, 5));
            if (rough) {
                image.rough = made.tensor(reader, GGML_TYPE_Q4_0, added.width, image.tensor.rows);
                image.rest = made.tensor(reader, type, added.k, image.tensor.rows);
            }
        }
        added.images.front().weight = added.input + ".weight";
        for (size_t p = 0, points = static_cast<size_t>(reader.below(curve_points + 1)); p < points; p++) {
            added.figures.curve[p] = { static_cast<uint32_t>(p) + 1, any_floats(reader, 1).front() };
        }
        added.figures.residual_energy = any_floats(reader, 1).front();
    }
    return made;
}

template <typename Number>
void overwrite(Bytes & bytes, const Gguf & file, const char * name, Number value) {
    for (const GgufValue & pair : file.values) {
        if (pair.key == name && pair.data.size() == sizeof(value)) {
            const auto * begin = reinterpret_cast<const char *>(bytes.data());
            std::memcpy(bytes.data() + (pair.data.data() - begin), &value, sizeof(value));
        }
    }
}

// The sum of the tensors' bytes, and so the file's; the tuning's stays as it is.
void make_sums_good(Bytes & bytes) {
    const Gguf file = walk(bytes, bytes.size());
    if (file.objection != nullptr) {
        return;
    }
    DataSum sum;
    sum.add(std::span(bytes).subspan(file.data_begin));
    overwrite(bytes, file, key::data_checksum, sum.get());
    Values values(file);
    SubspaceValues read;
    read.calibration = { values.text(key::subspace_text), values.text(key::subspace_date),
                         values.u32(key::subspace_context), values.u32(key::subspace_tokens) };
    read.curve_counts = values.array<uint32_t>(key::curve_counts, GGUF_TYPE_UINT32, bytes.size());
    read.curve_energies = values.array<float>(key::curve_energies, GGUF_TYPE_FLOAT32, bytes.size());
    read.residual_energies = values.array<float>(key::residual_energies, GGUF_TYPE_FLOAT32, bytes.size());
    read.held_out = values.array<float>(key::held_out, GGUF_TYPE_FLOAT32, bytes.size());
    read.gains = values.array<float>(key::gains, GGUF_TYPE_FLOAT32, bytes.size());
    read.rough_errors = values.array<float>(key::rough_errors, GGUF_TYPE_FLOAT32, bytes.size());
    read.data_checksum = sum.get();
    overwrite(bytes, file, key::subspace_checksum, checksum_of(read, file.tensors, values.text(key::model_sha256)));
}

// The engine keeps its conversions behind pointers of another type.
#ifdef __clang__
__attribute__((no_sanitize("function")))
#endif
void to_floats(ggml_type type, const Bytes & from, std::vector<float> & values) {
    if (type == GGML_TYPE_F32) {
        std::memcpy(values.data(), from.data(), from.size());
    } else {
        ggml_get_type_traits(type)->to_float(from.data(), values.data(), static_cast<int64_t>(values.size()));
    }
}

void check_tensor(const TensorView & tensor, const char * what) {
    require(tensor.columns > 0 && tensor.rows > 0, what);
    require(tensor.size == ggml_row_size(tensor.type, tensor.columns) * static_cast<size_t>(tensor.rows), what);
    std::vector<float> values(static_cast<size_t>(tensor.columns * tensor.rows));
    to_floats(tensor.type, Bytes(tensor.data, tensor.data + tensor.size), values); // every byte is there
    require(std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); }), what);
}

void check_subspaces(const Bytes & bytes) {
    const Opened opened = read_subspaces(bytes);
    require((opened.file != nullptr) == opened.complaint.empty(), "subspaces or a complaint");
    if (!opened.file) {
        return;
    }
    require(decode(bytes).sidecar == opened.file->sidecar(), "the same tuning with and without the tensors");
    for (const Subspace & subspace : opened.file->subspaces()) {
        const auto layers = static_cast<int>(opened.file->sidecar().fingerprints.size());
        require(subspace.layer >= 0 && subspace.layer < layers, "a layer of the model");
        require(subspace.k >= 1 && subspace.k <= subspace.width, "no more directions than coordinates");
        require(subspace.basis.columns == subspace.width && subspace.basis.rows == subspace.k, "the basis fits");
        check_tensor(subspace.basis, "the basis is all there");
        require(!subspace.images.empty(), "an image at least");
        for (const Image & image : subspace.images) {
            require(image.tensor.columns == subspace.k, "the image fits");
            check_tensor(image.tensor, "the image is all there");
            require((image.rough.data != nullptr) == subspace.figures.has_rough(), "a rough copy where there is one");
            if (subspace.figures.has_rough()) {
                require(image.rough.columns == subspace.width && image.rough.rows == image.tensor.rows &&
                            image.rest.columns == subspace.k && image.rest.rows == image.tensor.rows,
                        "the rough copy fits");
                check_tensor(image.rough, "the rough copy is all there");
                check_tensor(image.rest, "its rest is all there");
            }
        }
    }
    if (!opened.file->subspaces().empty()) {
        const Bytes again = encode(opened.file->sidecar(), opened.file->calibration(), opened.file->subspaces());
        require(read_subspaces(again).file != nullptr, "what was read is written and read again");
    }
}

void check_changed(Bytes bytes, ByteReader & reader) {
    change(bytes, reader);
    check(bytes);
    check_subspaces(bytes);
    make_sums_good(bytes);
    check(bytes);
    check_subspaces(bytes);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t * data, size_t size) {
    ByteReader reader({ data, size });
    if (size == 0) {
        check({});
        check_subspaces({});
        return 0;
    }
    const int64_t kind = reader.below(4);
    if (kind == 0) {
        const auto * file = reinterpret_cast<const std::byte *>(data + 1);
        const Bytes bytes(file, file + size - 1);
        check(bytes);
        check_subspaces(bytes);
        return 0;
    }
    const Sidecar sidecar = any_sidecar(reader);
    if (kind == 1) {
        const Bytes bytes = encode(sidecar);
        check(bytes);
        check_changed(bytes, reader);
        return 0;
    }
    const AnySubspaces made = any_subspaces(reader);
    const Bytes bytes = encode(sidecar, { any_text(reader, 8), "2026-01-31", 512, 1024 }, made.all);
    check(bytes);
    check_subspaces(bytes);
    check_changed(bytes, reader);
    return 0;
}
