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

bool is_exact(uint32_t type) { return type == GGML_TYPE_F32 || type == GGML_TYPE_F16; }

TensorView view_of(const GgufTensor & tensor) {
    return { static_cast<ggml_type>(tensor.type), static_cast<int64_t>(tensor.columns),
             static_cast<int64_t>(tensor.rows), nullptr, static_cast<size_t>(tensor.size) };
}

// nullptr: nothing to object.
const char * add_basis(const GgufTensor & tensor, std::string_view name, size_t layers, std::vector<Subspace> & to) {
    if (!is_exact(tensor.type) || tensor.columns > widest_input || tensor.rows > tensor.columns) {
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
    if (!is_exact(tensor.type) && tensor.type != GGML_TYPE_Q8_0 && tensor.type != GGML_TYPE_Q4_0) {
        return "has an image of a type that no sidecar has";
    }
    subspace.images.push_back({ std::string(name) + key::weight_suffix, view_of(tensor), {}, {} });
    return nullptr;
}

// A rough copy stands behind its image, and the rest behind the rough copy.
const char * add_rough(const GgufTensor & tensor, std::string_view name, std::vector<Subspace> & to) {
    const bool behind = !to.empty() && !to.back().images.empty() &&
                        to.back().images.back().weight == std::string(name) + key::weight_suffix;
    if (!behind || to.back().images.back().rough.columns != 0) {
        return "has a rough copy without an image";
    }
    Image & image = to.back().images.back();
    const bool rough = tensor.type == GGML_TYPE_Q4_0 || tensor.type == GGML_TYPE_Q3_K || tensor.type == GGML_TYPE_Q2_K;
    if (!rough || tensor.columns != to.back().width || static_cast<int64_t>(tensor.rows) != image.tensor.rows) {
        return "has a rough copy of a type or shape that no sidecar has";
    }
    image.rough = view_of(tensor);
    return nullptr;
}

const char * add_rest(const GgufTensor & tensor, std::string_view name, std::vector<Subspace> & to) {
    const bool behind = !to.empty() && !to.back().images.empty() &&
                        to.back().images.back().weight == std::string(name) + key::weight_suffix &&
                        to.back().images.back().rough.columns != 0 && to.back().images.back().rest.columns == 0;
    if (!behind) {
        return "has the rest of a rough copy that isn't there";
    }
    Image & image = to.back().images.back();
    if (tensor.type != static_cast<uint32_t>(image.tensor.type) || tensor.columns != to.back().k ||
        static_cast<int64_t>(tensor.rows) != image.tensor.rows) {
        return "has the rest of a rough copy in another shape than its image";
    }
    image.rest = view_of(tensor);
    return nullptr;
}

// One tensor after the other; each kind knows what it must stand behind.
const char * add_tensor(const GgufTensor & tensor, size_t layers, std::vector<Subspace> & to) {
    if (const std::string_view name = stem(tensor.name, key::basis_suffix); !name.empty()) {
        return add_basis(tensor, name, layers, to);
    }
    if (const std::string_view name = stem(tensor.name, key::image_suffix); !name.empty()) {
        return add_image(tensor, name, to);
    }
    if (const std::string_view name = stem(tensor.name, key::rough_suffix); !name.empty()) {
        return add_rough(tensor, name, to);
    }
    if (const std::string_view name = stem(tensor.name, key::rest_suffix); !name.empty()) {
        return add_rest(tensor, name, to);
    }
    return "has a tensor that no sidecar has";
}

const char * group_tensors(const Gguf & file, size_t layers, std::vector<Subspace> & to) {
    for (const GgufTensor & tensor : file.tensors) {
        if (!is_plain(tensor.name)) {
            return "has a tensor that no sidecar has";
        }
        if (const char * bad = add_tensor(tensor, layers, to)) {
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
    constexpr float most_gain = 1e6F;
    const bool gate = figures.gain > 0.0F && figures.gain <= most_gain && is_share(figures.rough_error);
    return gate && is_share(figures.residual_energy) &&
           std::all_of(figures.held_out.begin(), figures.held_out.end(), is_share) &&
           std::is_sorted(figures.held_out.begin(), figures.held_out.end());
}

// All of an input's maps have a rough copy, or none has.
bool has_its_copies(const Subspace & subspace) {
    return std::all_of(subspace.images.begin(), subspace.images.end(), [&](const Image & image) {
        return (image.rough.columns != 0) == subspace.figures.has_rough() &&
               (image.rest.columns != 0) == subspace.figures.has_rough();
    });
}

bool take_figures(const SubspaceValues & values, std::vector<Subspace> & to) {
    const size_t count = to.size();
    if (values.curve_counts.size() != count * curve_points || values.curve_energies.size() != count * curve_points ||
        values.residual_energies.size() != count || values.held_out.size() != count * held_out_points ||
        values.gains.size() != count || values.rough_errors.size() != count) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        SubspaceFigures & figures = to[i].figures;
        for (size_t p = 0; p < curve_points; p++) {
            figures.curve[p] = { values.curve_counts[(i * curve_points) + p],
                                 values.curve_energies[(i * curve_points) + p] };
        }
        figures.residual_energy = values.residual_energies[i];
        std::copy_n(values.held_out.begin() + static_cast<ptrdiff_t>(i * held_out_points), held_out_points,
                    figures.held_out.begin());
        figures.gain = values.gains[i];
        figures.rough_error = values.rough_errors[i];
        if (!is_sound(figures, to[i].width) || !has_its_copies(to[i])) {
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
    read.held_out = values.array<float>(key::held_out, GGUF_TYPE_FLOAT32, most_tensors * held_out_points);
    read.gains = values.array<float>(key::gains, GGUF_TYPE_FLOAT32, most_tensors);
    read.rough_errors = values.array<float>(key::rough_errors, GGUF_TYPE_FLOAT32, most_tensors);
    read.data_checksum = values.u64(key::data_checksum);
    return read;
}

} // namespace

std::vector<const TensorView *> Subspace::tensors() const {
    std::vector<const TensorView *> all = { &basis };
    for (const Image & image : images) {
        all.push_back(&image.tensor);
        if (figures.has_rough()) {
            all.insert(all.end(), { &image.rough, &image.rest });
        }
    }
    return all;
}

double held_out_within(const SubspaceFigures & figures, double bound) {
    const auto & points = figures.held_out;
    const auto above = std::upper_bound(points.begin(), points.end(), bound,
                                        [](double one, float other) { return one < static_cast<double>(other); });
    if (above == points.begin() || above == points.end()) {
        return above == points.begin() ? 0.0 : 1.0;
    }
    const auto low = static_cast<double>(*(above - 1));
    const double part = (bound - low) / (static_cast<double>(*above) - low);
    return (static_cast<double>(above - 1 - points.begin()) + part) / static_cast<double>(points.size() - 1);
}

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
