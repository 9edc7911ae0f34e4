#include "cli/calibration_images.h"

#include "cli/engine.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/sha256.h"
#include "subspace/gate.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <limits>
#include <stdexcept>

namespace cascade::cli {

namespace {

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

std::array<float, sidecar::held_out_points> quantiles(std::vector<float> values) {
    std::array<float, sidecar::held_out_points> points = {};
    std::sort(values.begin(), values.end());
    for (size_t i = 0; i < points.size(); i++) {
        points[i] = values.empty() ? 1.0F : share(values[i * (values.size() - 1) / (points.size() - 1)]);
    }
    return points;
}

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
                                     const std::vector<uint64_t> & some_fingerprints, ModelWeights & some_weights)
    : options(some_options), result(some_result), fingerprints(some_fingerprints), weights(some_weights) {}

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

sidecar::Subspace CalibrationImages::described(const CalibratedInput & input) {
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
    subspace.figures.held_out = quantiles(input.held_out);
    subspace.figures.gain = static_cast<float>(input.gain);
    subspace.basis = planned(basis_type(options.type), input.input.width, input.k);
    const bool rough = options.rough != GGML_TYPE_COUNT && input.input.width % ggml_blck_size(options.rough) == 0;
    subspace.figures.rough_error = rough ? share(rough_error(input.input.weights)) : 0.0F;
    for (const std::string & weight : input.input.weights) {
        const int64_t outputs = weights.shape(weight).rows;
        sidecar::Image & image = subspace.images.emplace_back();
        image.weight = weight;
        image.tensor = planned(options.type, input.k, outputs);
        if (subspace.figures.has_rough()) {
            image.rough = planned(options.rough, input.input.width, outputs);
            image.rest = image.tensor;
        }
    }
    return subspace;
}

// What of the rows a rough copy lacks.
std::vector<float> CalibrationImages::without_rough(const subspace::MatrixView & rows) const {
    const std::vector<std::byte> copy = converted(options.rough, rows.data, rows.rows, rows.columns);
    std::vector<float> left(static_cast<size_t>(rows.rows * rows.columns));
    ggml_get_type_traits(options.rough)->to_float(copy.data(), left.data(), rows.rows * rows.columns);
    std::transform(rows.data, rows.data + left.size(), left.begin(), left.begin(), std::minus<>());
    return left;
}

double CalibrationImages::rough_error(const std::vector<std::string> & of_weights) {
    double lost = 0.0;
    double all = 0.0;
    for (const std::string & weight : of_weights) {
        weights.each(weight, [&](const subspace::MatrixView & rows) {
            lost += subspace::squared_length(without_rough(rows));
            all += subspace::squared_length({ rows.data, static_cast<size_t>(rows.rows * rows.columns) });
            return true;
        });
    }
    return all > 0.0 ? std::sqrt(lost / all) : 0.0;
}

bool CalibrationImages::write_part(Part part, const std::string & weight, const subspace::ImageOf & image,
                                   sidecar::SubspaceWriter & to, Team & team) {
    std::vector<float> out;
    return weights.each(weight, [&](const subspace::MatrixView & rows) {
        if (part == Part::rough) {
            to.add(converted(options.rough, rows.data, rows.rows, rows.columns));
        } else {
            const std::vector<float> left = part == Part::rest ? without_rough(rows) : std::vector<float>();
            const subspace::MatrixView of = { left.empty() ? rows.data : left.data(), rows.rows, rows.columns,
                                              rows.columns };
            out.resize(static_cast<size_t>(rows.rows * image.count()));
            image.rows(of, out.data(), team);
            to.add(converted(options.type, out.data(), rows.rows, image.count()));
        }
        return !interrupted();
    });
}

bool CalibrationImages::write(const std::function<KeptBasis(size_t)> & basis_of, Team & team, Progress & progress) {
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
        KeptBasis found = basis_of(i);
        subspace::Basis & basis = found.basis;
        writer.add(converted(subspaces[i].basis.type, basis.vectors.data(), basis.count(), basis.width));
        round_to(subspaces[i].basis.type, basis.vectors);
        const subspace::ImageOf image(found.guess_view());
        for (const std::string & weight : result.inputs[i].input.weights) {
            if (weights.shape(weight).columns != basis.width) {
                throw std::runtime_error(fmt::format("{} has {} columns in the model's file and {} in its graph",
                                                     weight, weights.shape(weight).columns, basis.width));
            }
            bool done = write_part(Part::image, weight, image, writer, team);
            if (done && subspaces[i].figures.has_rough()) {
                done = write_part(Part::rough, weight, image, writer, team) &&
                       write_part(Part::rest, weight, image, writer, team);
            }
            if (!done) {
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
