#include "sidecar/write_subspaces.h"

#include "sidecar/encode.h"
#include "sidecar/keys.h"

#include "ggml-cpp.h"
#include "gguf.h"

#include <cassert>
#include <filesystem>
#include <system_error>
#include <unistd.h>

namespace cascade::sidecar {

namespace {

constexpr size_t alignment = GGUF_DEFAULT_ALIGNMENT;
static_assert(alignment == DataSum::step);

SubspaceValues values_of(const Calibration & calibration, std::span<const Subspace> subspaces, uint64_t data_checksum) {
    SubspaceValues values;
    values.calibration = calibration;
    values.data_checksum = data_checksum;
    for (const Subspace & subspace : subspaces) {
        for (const EnergyPoint & point : subspace.figures.curve) {
            values.curve_counts.push_back(point.k);
            values.curve_energies.push_back(point.energy);
        }
        values.residual_energies.push_back(subspace.figures.residual_energy);
        values.held_out.insert(values.held_out.end(), subspace.figures.held_out.begin(),
                               subspace.figures.held_out.end());
        values.gains.push_back(subspace.figures.gain);
        values.rough_errors.push_back(subspace.figures.rough_error);
    }
    return values;
}

std::vector<GgufTensor> listed(const std::vector<PlannedTensor> & planned) {
    std::vector<GgufTensor> tensors;
    tensors.reserve(planned.size());
    for (const PlannedTensor & tensor : planned) {
        tensors.push_back({ tensor.name, static_cast<uint32_t>(tensor.type), static_cast<uint64_t>(tensor.columns),
                            static_cast<uint64_t>(tensor.rows), 0, 0 });
    }
    return tensors;
}

void set_values(gguf_context * file, const SubspaceValues & values) {
    const auto set_floats = [&](const char * name, const std::vector<float> & floats) {
        gguf_set_arr_data(file, name, GGUF_TYPE_FLOAT32, floats.data(), floats.size());
    };
    gguf_set_val_u32(file, key::subspace_version, subspace_version);
    gguf_set_val_u64(file, key::data_checksum, values.data_checksum);
    gguf_set_val_str(file, key::subspace_text, values.calibration.text.c_str());
    gguf_set_val_str(file, key::subspace_date, values.calibration.date.c_str());
    gguf_set_val_u32(file, key::subspace_context, values.calibration.context);
    gguf_set_val_u32(file, key::subspace_tokens, values.calibration.tokens);
    gguf_set_arr_data(file, key::curve_counts, GGUF_TYPE_UINT32, values.curve_counts.data(),
                      values.curve_counts.size());
    set_floats(key::curve_energies, values.curve_energies);
    set_floats(key::residual_energies, values.residual_energies);
    set_floats(key::held_out, values.held_out);
    set_floats(key::gains, values.gains);
    set_floats(key::rough_errors, values.rough_errors);
}

void add_tensors(gguf_context * file, const std::vector<PlannedTensor> & planned) {
    const ggml_context_ptr tensors(ggml_init({ (planned.size() + 1) * ggml_tensor_overhead(), nullptr, true }));
    for (const PlannedTensor & plan : planned) {
        ggml_tensor * tensor = ggml_new_tensor_2d(tensors.get(), plan.type, plan.columns, plan.rows);
        ggml_set_name(tensor, plan.name.c_str());
        gguf_add_tensor(file, tensor); // copies what it needs
    }
}

std::vector<std::byte> head_of(const Sidecar & sidecar, const Calibration & calibration,
                               std::span<const Subspace> subspaces, const std::vector<PlannedTensor> & planned,
                               uint64_t data_checksum) {
    const gguf_context_ptr file(gguf_init_empty());
    set_sidecar(file.get(), sidecar);
    const SubspaceValues values = values_of(calibration, subspaces, data_checksum);
    set_values(file.get(), values);
    gguf_set_val_u64(file.get(), key::subspace_checksum, checksum_of(values, listed(planned), sidecar.model_sha256));
    add_tensors(file.get(), planned);
    std::vector<std::byte> bytes(gguf_get_meta_size(file.get()));
    gguf_get_meta_data(file.get(), bytes.data());
    return bytes;
}

uint64_t bytes_of(const PlannedTensor & tensor) {
    return ggml_row_size(tensor.type, tensor.columns) * static_cast<uint64_t>(tensor.rows);
}

} // namespace

std::vector<PlannedTensor> tensors_of(std::span<const Subspace> subspaces) {
    std::vector<PlannedTensor> planned;
    const auto plan = [&](const std::string & name, const TensorView & tensor) {
        planned.push_back({ name, tensor.type, tensor.columns, tensor.rows });
    };
    for (const Subspace & subspace : subspaces) {
        plan(subspace.input + key::basis_suffix, subspace.basis);
        for (const Image & image : subspace.images) {
            const std::string stem =
                image.weight.substr(0, image.weight.size() - std::string_view(key::weight_suffix).size());
            plan(stem + key::image_suffix, image.tensor);
            if (subspace.figures.has_rough()) {
                plan(stem + key::rough_suffix, image.rough);
                plan(stem + key::rest_suffix, image.rest);
            }
        }
    }
    return planned;
}

SubspaceWriter::SubspaceWriter(const std::string & to, const Sidecar & sidecar, const Calibration & calibration,
                               std::span<const Subspace> subspaces)
    : path(to), part(to + "." + std::to_string(::getpid()) + ".part"), binding(sidecar), made(calibration),
      described(subspaces.begin(), subspaces.end()), planned(tensors_of(subspaces)),
      file(part, std::ios::binary | std::ios::trunc) {
    const std::vector<std::byte> bytes = head();
    file.write(reinterpret_cast<const char *>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

SubspaceWriter::~SubspaceWriter() {
    if (!finished) {
        std::error_code ignored;
        std::filesystem::remove(part, ignored);
    }
}

std::vector<std::byte> SubspaceWriter::head() const { return head_of(binding, made, described, planned, sum.get()); }

void SubspaceWriter::add(std::span<const std::byte> bytes) {
    assert(tensor < planned.size() && in_tensor + bytes.size() <= bytes_of(planned[tensor]));
    file.write(reinterpret_cast<const char *>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    in_tensor += bytes.size();
    rest.insert(rest.end(), bytes.begin(), bytes.end());
    const size_t whole = rest.size() / alignment * alignment;
    sum.add(std::span(rest).first(whole));
    rest.erase(rest.begin(), rest.begin() + static_cast<ptrdiff_t>(whole));
    if (in_tensor == bytes_of(planned[tensor])) {
        pad();
        tensor++;
        in_tensor = 0;
    }
}

void SubspaceWriter::pad() {
    if (rest.empty()) {
        return;
    }
    const size_t missing = alignment - rest.size();
    rest.resize(alignment);
    sum.add(rest);
    rest.clear();
    const std::array<char, alignment> zeros = {};
    file.write(zeros.data(), static_cast<std::streamsize>(missing));
}

bool SubspaceWriter::finish() {
    const std::vector<std::byte> bytes = head(); // now with the tensors' sum
    file.seekp(0);
    file.write(reinterpret_cast<const char *>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    file.close();
    std::error_code error;
    if (file && tensor == planned.size()) {
        std::filesystem::rename(part, path, error);
        finished = !error;
    }
    return finished;
}

bool save_beside_subspaces(const Sidecar & sidecar, const std::string & path) {
    const Opened there = open_subspaces(path);
    const bool same = there.file && !there.file->subspaces().empty() &&
                      there.file->sidecar().model_sha256 == sidecar.model_sha256 &&
                      there.file->sidecar().fingerprints == sidecar.fingerprints;
    if (!same) {
        return save(sidecar, path);
    }
    SubspaceWriter writer(path, sidecar, there.file->calibration(), there.file->subspaces());
    for (const Subspace & subspace : there.file->subspaces()) {
        for (const TensorView * tensor : subspace.tensors()) {
            writer.add({ tensor->data, tensor->size });
        }
    }
    return writer.finish();
}

std::vector<std::byte> encode(const Sidecar & sidecar, const Calibration & calibration,
                              std::span<const Subspace> subspaces) {
    std::vector<std::byte> data;
    for (const Subspace & subspace : subspaces) {
        for (const TensorView * tensor : subspace.tensors()) {
            data.insert(data.end(), tensor->data, tensor->data + tensor->size);
            data.resize((data.size() + alignment - 1) / alignment * alignment);
        }
    }
    DataSum sum;
    sum.add(data);
    std::vector<std::byte> bytes = head_of(sidecar, calibration, subspaces, tensors_of(subspaces), sum.get());
    bytes.insert(bytes.end(), data.begin(), data.end());
    return bytes;
}

} // namespace cascade::sidecar
