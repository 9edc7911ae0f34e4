#include "cli/calibration_images.h"

#include "cli/engine.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/sha256.h"
#include "subspace/image.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <stdexcept>

namespace cascade::cli {

namespace {

constexpr int64_t block_values = int64_t{ 1 } << 22U; // of weights in floats at a time

ggml_type basis_type(ggml_type image) { return image == GGML_TYPE_F32 ? GGML_TYPE_F32 : GGML_TYPE_F16; }

std::vector<std::byte> converted(ggml_type type, const float * values, int64_t rows, int64_t columns) {
    std::vector<std::byte> bytes(ggml_row_size(type, columns) * static_cast<size_t>(rows));
    ggml_quantize_chunk(type, values, bytes.data(), 0, rows, columns, nullptr);
    return bytes;
}

// As the plugin will have it: an image of the basis before rounding would fit no coordinates.
void round_to(ggml_type type, std::vector<float> & values) {
    if (type == GGML_TYPE_F16) {
        for (float & value : values) {
            value = ggml_fp16_to_fp32(ggml_fp32_to_fp16(value));
        }
    }
}

sidecar::TensorView planned(ggml_type type, int64_t columns, int64_t rows) {
    return { type, columns, rows, nullptr, ggml_row_size(type, columns) * static_cast<size_t>(rows) };
}

float share(double value) { return static_cast<float>(std::clamp(value, 0.0, 1.0)); }

} // namespace

std::vector<int64_t> energy_points(const CalibratedInput & input) {
    std::vector<int64_t> points = { 16, 32, 64, 128, 256, 512, input.k, input.input.width / 2 };
    std::sort(points.begin(), points.end());
    points.erase(std::unique(points.begin(), points.end()), points.end());
    const auto known = static_cast<int64_t>(input.values.size());
    std::erase_if(points, [&](int64_t k) { return k < 1 || k > known; });
    return points;
}

double median_of(std::vector<float> values) {
    if (values.empty()) {
        return std::numeric_limits<double>::quiet_NaN();
    }
    const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return static_cast<double>(*middle);
}

double share_within(const std::vector<float> & values, double bound) {
    const auto within =
        std::count_if(values.begin(), values.end(), [&](float value) { return static_cast<double>(value) <= bound; });
    return values.empty() ? std::numeric_limits<double>::quiet_NaN()
                          : static_cast<double>(within) / static_cast<double>(values.size());
}

CalibrationImages::CalibrationImages(const CalibrateOptions & some_options, const CalibrateResult & some_result,
                                     const std::vector<uint64_t> & some_fingerprints, const llama_model * model)
    : options(some_options), result(some_result), fingerprints(some_fingerprints), weights(model, options.model) {}

// What a sidecar in this place knows of the same model's tuning stays.
sidecar::Sidecar CalibrationImages::binding() const {
    sidecar::Sidecar binding;
    binding.model_sha256 = sha256_of_file(options.model);
    binding.fingerprints = fingerprints;
    const sidecar::Loaded there = sidecar::load(options.sidecar);
    const bool same = there.sidecar && there.sidecar->model_sha256 == binding.model_sha256 &&
                      there.sidecar->fingerprints == fingerprints;
    return same ? *there.sidecar : binding;
}

sidecar::Subspace CalibrationImages::described(const CalibratedInput & input) const {
    sidecar::Subspace subspace;
    subspace.input = input.input.name;
    subspace.layer = input.input.layer;
    subspace.width = static_cast<uint32_t>(input.input.width);
    subspace.k = static_cast<uint32_t>(input.k);
    size_t point = 0;
    for (const int64_t k : energy_points(input)) {
        subspace.figures.curve[point++] = { static_cast<uint32_t>(k), share(input.values[static_cast<size_t>(k) - 1]) };
    }
    subspace.figures.residual_energy = share(1.0 - input.values[static_cast<size_t>(input.k) - 1]);
    const bool measured = !input.held_out.empty();
    subspace.figures.held_out_median = measured ? share(median_of(input.held_out)) : 1.0F;
    subspace.figures.held_out_passing = measured ? share(share_within(input.held_out, gate)) : 0.0F;
    subspace.basis = planned(basis_type(options.type), input.input.width, input.k);
    for (const std::string & weight : input.input.weights) {
        subspace.images.push_back({ weight, planned(options.type, input.k, weights.shape(weight).rows) });
    }
    return subspace;
}

bool CalibrationImages::write_image(const std::string & weight, const subspace::MatrixView & basis,
                                    sidecar::SubspaceWriter & to, Team & team) {
    const ModelWeights::Shape shape = weights.shape(weight);
    if (shape.columns != basis.columns) {
        throw std::runtime_error(fmt::format("{} has {} columns in the model's file and {} in its graph", weight,
                                             shape.columns, basis.columns));
    }
    const subspace::ImageOf image(basis);
    const int64_t at_once = std::clamp<int64_t>(block_values / shape.columns, 1, shape.rows);
    std::vector<float> rows(static_cast<size_t>(at_once * shape.columns));
    std::vector<float> out(static_cast<size_t>(at_once * image.count()));
    for (int64_t first = 0; first < shape.rows; first += at_once) {
        if (interrupted()) {
            return false;
        }
        const int64_t some = std::min(at_once, shape.rows - first);
        weights.read(weight, first, some, rows.data());
        image.rows({ rows.data(), some, shape.columns, shape.columns }, out.data(), team);
        to.add(converted(options.type, out.data(), some, image.count()));
    }
    return true;
}

bool CalibrationImages::write(const std::function<subspace::Basis(size_t)> & basis_of, Team & team,
                              Progress & progress) {
    std::vector<sidecar::Subspace> subspaces;
    subspaces.reserve(result.inputs.size());
    for (const CalibratedInput & input : result.inputs) {
        subspaces.push_back(described(input));
    }
    const sidecar::Calibration made = { plain_name(options.text), result.date, static_cast<uint32_t>(options.length),
                                        static_cast<uint32_t>(result.tokens) };
    sidecar::SubspaceWriter writer(options.sidecar, binding(), made, subspaces);
    for (size_t i = 0; i < subspaces.size(); i++) {
        progress.show(fmt::format("images of {} ({} of {})", subspaces[i].input, i + 1, subspaces.size()));
        subspace::Basis basis = basis_of(i);
        writer.add(converted(subspaces[i].basis.type, basis.vectors.data(), basis.count(), basis.width));
        round_to(subspaces[i].basis.type, basis.vectors);
        for (const sidecar::Image & image : subspaces[i].images) {
            if (!write_image(image.weight, basis.view(), writer, team)) {
                return false;
            }
        }
    }
    if (!writer.finish()) {
        throw std::runtime_error("can't write '" + options.sidecar + "': give another place with -o");
    }
    return true;
}

} // namespace cascade::cli
