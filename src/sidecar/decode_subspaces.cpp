// Subspaces as a file's head describes them: a basis, the images behind it, the next basis.
#include "sidecar/decode.h"
#include "sidecar/keys.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace cascade::sidecar {

namespace {

constexpr const char * impossible = "has values that no sidecar can have";

bool is_share(float value) { return value >= 0.0F && value <= 1.0F; } // false for what is no number

// "blk.3.attn_q" -> 3; -1: of no layer.
int layer_of(std::string_view name) {
    constexpr std::string_view prefix = "blk.";
    const size_t dot = name.find('.', prefix.size());
    if (!name.starts_with(prefix) || dot == std::string_view::npos || dot + 1 == name.size()) {
        return -1;
    }
    const std::string_view digits = name.substr(prefix.size(), dot - prefix.size());
    int layer = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), layer);
    const bool whole = error == std::errc() && end == digits.data() + digits.size();
    return whole && layer >= 0 && std::to_string(layer) == digits ? layer : -1;
}

// "blk.3.attn_q.basis" -> "blk.3.attn_q"; empty: another kind of name.
std::string_view stem(std::string_view name, std::string_view suffix) {
    return name.ends_with(suffix) ? name.substr(0, name.size() - suffix.size()) : std::string_view();
}

TensorView view_of(const GgufTensor & tensor) {
    return { static_cast<ggml_type>(tensor.type), static_cast<int64_t>(tensor.columns),
             static_cast<int64_t>(tensor.rows), nullptr, static_cast<size_t>(tensor.size) };
}

// nullptr: nothing to object.
const char * add_basis(const GgufTensor & tensor, std::string_view name, size_t layers, std::vector<Subspace> & to) {
    const bool exact = tensor.type == GGML_TYPE_F32 || tensor.type == GGML_TYPE_F16;
    if (!exact || tensor.columns > widest_input || tensor.rows > tensor.columns) {
        return "has a basis of a type or shape that no sidecar has";
    }
    const int layer = layer_of(name);
    if (layer < 0 || static_cast<size_t>(layer) >= layers) {
        return "has a basis for no layer of its model";
    }
    if (!to.empty() && to.back().images.empty()) {
        return "has a basis without images";
    }
    Subspace & added = to.emplace_back();
    added.input = name;
    added.layer = layer;
    added.width = static_cast<uint32_t>(tensor.columns);
    added.k = static_cast<uint32_t>(tensor.rows);
    added.basis = view_of(tensor);
    return nullptr;
}

const char * add_image(const GgufTensor & tensor, std::string_view name, std::vector<Subspace> & to) {
    if (to.empty()) {
        return "has an image without a basis";
    }
    Subspace & subspace = to.back();
    if (tensor.columns != subspace.k) {
        return "has an image that doesn't fit its basis";
    }
    if (layer_of(name) != subspace.layer || (subspace.images.empty() && name != subspace.input)) {
        return "has an image of another input than its basis";
    }
    subspace.images.push_back({ std::string(name) + key::weight_suffix, view_of(tensor) });
    return nullptr;
}

const char * group_tensors(const Gguf & file, size_t layers, std::vector<Subspace> & to) {
    for (const GgufTensor & tensor : file.tensors) {
        const std::string_view basis = stem(tensor.name, key::basis_suffix);
        const std::string_view image = stem(tensor.name, key::image_suffix);
        const char * bad = nullptr;
        if (!is_plain(tensor.name) || (basis.empty() && image.empty())) {
            bad = "has a tensor that no sidecar has";
        } else {
            bad = basis.empty() ? add_image(tensor, image, to) : add_basis(tensor, basis, layers, to);
        }
        if (bad != nullptr) {
            return bad;
        }
    }
    return !to.empty() && to.back().images.empty() ? "has a basis without images" : nullptr;
}

bool is_sound(const SubspaceFigures & figures, uint32_t width) {
    uint32_t k = 0;
    float energy = 0.0F;
    bool over = false;
    for (const EnergyPoint & point : figures.curve) {
        if (over ? point.k != 0 : point.k != 0 && (point.k <= k || point.k > width || point.energy < energy)) {
            return false;
        }
        over = point.k == 0;
        if (!is_share(point.energy) || (over && point.energy != 0.0F)) {
            return false;
        }
        k = point.k;
        energy = point.energy;
    }
    return is_share(figures.residual_energy) && is_share(figures.held_out_median) && is_share(figures.held_out_passing);
}

bool take_figures(const SubspaceValues & values, std::vector<Subspace> & to) {
    const size_t count = to.size();
    if (values.curve_counts.size() != count * curve_points || values.curve_energies.size() != count * curve_points ||
        values.residual_energies.size() != count || values.held_out_medians.size() != count ||
        values.held_out_passing.size() != count) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        SubspaceFigures & figures = to[i].figures;
        for (size_t p = 0; p < curve_points; p++) {
            figures.curve[p] = { values.curve_counts[(i * curve_points) + p],
                                 values.curve_energies[(i * curve_points) + p] };
        }
        figures.residual_energy = values.residual_energies[i];
        figures.held_out_median = values.held_out_medians[i];
        figures.held_out_passing = values.held_out_passing[i];
        if (!is_sound(figures, to[i].width)) {
            return false;
        }
    }
    return true;
}

SubspaceValues read_values(Values & values) {
    SubspaceValues read;
    read.calibration.text = values.text(key::subspace_text);
    read.calibration.date = values.text(key::subspace_date);
    read.calibration.context = values.u32(key::subspace_context);
    read.calibration.tokens = values.u32(key::subspace_tokens);
    read.curve_counts = values.array<uint32_t>(key::curve_counts, GGUF_TYPE_UINT32, most_tensors * curve_points);
    read.curve_energies = values.array<float>(key::curve_energies, GGUF_TYPE_FLOAT32, most_tensors * curve_points);
    read.residual_energies = values.array<float>(key::residual_energies, GGUF_TYPE_FLOAT32, most_tensors);
    read.held_out_medians = values.array<float>(key::held_out_medians, GGUF_TYPE_FLOAT32, most_tensors);
    read.held_out_passing = values.array<float>(key::held_out_passing, GGUF_TYPE_FLOAT32, most_tensors);
    read.data_checksum = values.u64(key::data_checksum);
    return read;
}

} // namespace

std::string decode_subspaces(const Gguf & file, Values & values, const Sidecar & sidecar, Head & head) {
    if (!values.has(key::subspace_version)) {
        return file.tensors.empty() ? "" : "has tensors, but doesn't say what they are";
    }
    if (values.u32(key::subspace_version) != subspace_version) {
        return "has subspaces of another format version: make it anew with 'cascade calibrate'";
    }
    const SubspaceValues read = read_values(values);
    const uint64_t checksum = values.u64(key::subspace_checksum);
    if (!values.missed().empty()) {
        return "lacks " + values.missed() + ", or has it as something else";
    }
    if (const char * bad = group_tensors(file, sidecar.fingerprints.size(), head.subspaces)) {
        return bad;
    }
    if (!is_plain(read.calibration.text) || !is_plain(read.calibration.date) || !take_figures(read, head.subspaces)) {
        return impossible;
    }
    if (checksum != checksum_of(read, file.tensors, sidecar.model_sha256)) {
        return "is damaged: its checksum is another one";
    }
    head.calibration = read.calibration;
    head.data_checksum = read.data_checksum;
    head.offsets.reserve(file.tensors.size());
    for (const GgufTensor & tensor : file.tensors) {
        head.offsets.push_back(tensor.offset);
    }
    return {};
}

} // namespace cascade::sidecar
