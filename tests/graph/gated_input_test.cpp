// Maps through a subspace beside the engine's own products: tokens that don't pass keep every bit.
#include "attend/kernels/buffer.h"
#include "backend/engine.h"
#include "graph/gated_input.h"
#include "graph/shadow.h"
#include "support/cases.h"

#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpp.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <random>

namespace cascade::graph {
namespace {

struct Shape {
    int64_t width = 96, k = 32, tokens = 5;
    std::vector<int64_t> outputs = { 64, 32 };
    ggml_type weights = GGML_TYPE_F32, images = GGML_TYPE_F32, basis = GGML_TYPE_F32;
    float noise = 0.03F; // of the residual beside the subspace, for tokens that are to pass
    double near = 0.5;   // share of such tokens
    double middle = 0.0; // of those that are between near and far
    bool rough = false;  // there are rough copies of the weights
};

std::vector<char> stored(ggml_type type, const std::vector<float> & values, int64_t columns) {
    const auto rows = static_cast<int64_t>(values.size()) / columns;
    std::vector<char> bytes(ggml_row_size(type, columns) * static_cast<size_t>(rows));
    ggml_quantize_chunk(type, values.data(), bytes.data(), 0, rows, columns, nullptr);
    return bytes;
}

std::vector<float> read_back(ggml_type type, const std::vector<char> & bytes, size_t count) {
    std::vector<float> values(count);
    if (type == GGML_TYPE_F32) {
        std::memcpy(values.data(), bytes.data(), bytes.size());
    } else {
        ggml_get_type_traits(type)->to_float(bytes.data(), values.data(), static_cast<int64_t>(count));
    }
    return values;
}

// Two products of one input, computed by the engine and through a subspace.
class TwoMaps {
  public:
    TwoMaps(const Shape & a_shape, unsigned seed) : shape(a_shape), random(seed) {
        static const bool once = (ggml_backend_load_all_from_path(CASCADE_BIN), true);
        (void)once;
        engine.reset(ggml_backend_dev_init(backend::cpu_device(), nullptr));
        context.reset(ggml_init({ 1 << 20, nullptr, true }));
        input = ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, shape.width, shape.tokens);
        for (const int64_t size : shape.outputs) {
            weights.push_back(ggml_new_tensor_2d(context.get(), shape.weights, shape.width, size));
            outputs.push_back(ggml_mul_mat(context.get(), weights.back(), input));
        }
        graph = ggml_new_graph(context.get());
        for (ggml_tensor * output : outputs) {
            ggml_build_forward_expand(graph, output);
        }
        buffer.reset(ggml_backend_alloc_ctx_tensors(context.get(), engine.get()));
        make_basis();
        make_input();
        make_weights();
    }

    std::vector<std::vector<float>> compute(ggml_cgraph * what) {
        for (ggml_tensor * output : outputs) {
            std::vector<float> nothing(static_cast<size_t>(ggml_nelements(output)), -7.0F);
            ggml_backend_tensor_set(output, nothing.data(), 0, nothing.size() * sizeof(float));
        }
        EXPECT_EQ(ggml_backend_graph_compute(engine.get(), what), GGML_STATUS_SUCCESS);
        std::vector<std::vector<float>> all;
        for (ggml_tensor * output : outputs) {
            all.emplace_back(static_cast<size_t>(ggml_nelements(output)));
            ggml_backend_tensor_get(output, all.back().data(), 0, all.back().size() * sizeof(float));
        }
        return all;
    }

    std::vector<std::vector<float>> bare() { return compute(graph); }

    GatedMaps maps(subspace::GateBounds bounds) const {
        GatedMaps wanted;
        wanted.bounds = bounds;
        wanted.basis = { shape.basis, shape.width, shape.k, basis_bytes.data() };
        for (size_t i = 0; i < images.size(); i++) {
            GatedMap & map = wanted.maps.emplace_back();
            map.node = static_cast<int>(i);
            map.image = { shape.images, shape.k, shape.outputs[i], images[i].data() };
            if (shape.rough) {
                map.rough = { GGML_TYPE_Q4_0, shape.width, shape.outputs[i], rough[i].data() };
                map.rest = { shape.images, shape.k, shape.outputs[i], rest[i].data() };
            }
        }
        return wanted;
    }

    std::vector<std::vector<float>> gated(subspace::GateBounds bounds, GatedInput::Counts & counts, int times = 2) {
        const GatedMaps wanted = maps(bounds);
        EXPECT_EQ(gating_objection(*graph, wanted), nullptr);
        attend::Buffer scratch;
        GatedInput own(*graph, wanted, scratch.need(scratch_floats(*graph, wanted)));
        std::vector<Substitution> substitutions;
        for (size_t i = 0; i < wanted.maps.size(); i++) {
            substitutions.push_back({ wanted.maps[i].node, own.nodes_instead(i) });
        }
        Shadow shadow(*graph, {}, substitutions);
        std::vector<std::vector<float>> result;
        for (int i = 0; i < times; i++) { // the same each time
            result = compute(shadow.graph());
            counts = own.finish();
        }
        return result;
    }

    enum class Distance { near, middle, far };
    Distance distance(int64_t token) const { return distances[static_cast<size_t>(token)]; }
    bool is_near(int64_t token) const { return distance(token) == Distance::near; }

    double through(size_t map, int64_t token, int64_t output) const {
        return times_coordinates(images[map], map, token, output);
    }

    // W' x + ((W - W') V) g.
    double through_rough(size_t map, int64_t token, int64_t output) const {
        const std::vector<float> w =
            read_back(GGML_TYPE_Q4_0, rough[map], static_cast<size_t>(shape.width * shape.outputs[map]));
        double sum = times_coordinates(rest[map], map, token, output);
        for (int64_t i = 0; i < shape.width; i++) {
            sum += static_cast<double>(w[static_cast<size_t>((output * shape.width) + i)]) *
                   x[static_cast<size_t>((token * shape.width) + i)];
        }
        return sum;
    }

    const Shape shape;
    ggml_cgraph * graph = nullptr;

  private:
    // An image times g in double, of the matrices as they are stored.
    double times_coordinates(const std::vector<char> & stored_image, size_t map, int64_t token, int64_t output) const {
        double sum = 0.0;
        const std::vector<float> v = read_back(shape.basis, basis_bytes, static_cast<size_t>(shape.k * shape.width));
        const std::vector<float> image =
            read_back(shape.images, stored_image, static_cast<size_t>(shape.k * shape.outputs[map]));
        for (int64_t j = 0; j < shape.k; j++) {
            double g = 0.0;
            for (int64_t i = 0; i < shape.width; i++) {
                g += static_cast<double>(v[static_cast<size_t>((j * shape.width) + i)]) *
                     x[static_cast<size_t>((token * shape.width) + i)];
            }
            sum += g * image[static_cast<size_t>((output * shape.k) + j)];
        }
        return sum;
    }

    float normal() { return std::normal_distribution<float>()(random); }

    // Unit vectors of the first k coordinates, turned by reflections: orthonormal.
    void make_basis() {
        directions.assign(static_cast<size_t>(shape.k * shape.width), 0.0F);
        for (int64_t j = 0; j < shape.k; j++) {
            directions[static_cast<size_t>((j * shape.width) + j)] = 1.0F;
        }
        for (int turn = 0; turn < 3; turn++) {
            std::vector<double> mirror(static_cast<size_t>(shape.width));
            double length = 0.0;
            for (double & value : mirror) {
                value = normal();
                length += value * value;
            }
            for (int64_t j = 0; j < shape.k; j++) {
                float * row = directions.data() + (j * shape.width);
                double along = 0.0;
                for (size_t i = 0; i < mirror.size(); i++) {
                    along += row[i] * mirror[i];
                }
                for (size_t i = 0; i < mirror.size(); i++) {
                    row[i] -= static_cast<float>(2.0 * along / length * mirror[i]);
                }
            }
        }
        basis_bytes = stored(shape.basis, directions, shape.width);
    }

    void make_input() {
        std::uniform_real_distribution<double> chance(0.0, 1.0);
        for (int64_t token = 0; token < shape.tokens; token++) {
            const double drawn = chance(random);
            distances.push_back(drawn < shape.near                  ? Distance::near
                                : drawn < shape.near + shape.middle ? Distance::middle
                                                                    : Distance::far);
            const float relative = std::sqrt(static_cast<float>(shape.k) / static_cast<float>(shape.width));
            const float outside = distances.back() == Distance::far      ? 1.0F
                                  : distances.back() == Distance::middle ? 0.25F * relative
                                                                         : shape.noise * relative;
            std::vector<float> row(static_cast<size_t>(shape.width));
            for (float & value : row) {
                value = outside * normal();
            }
            for (int64_t j = 0; j < shape.k; j++) {
                const float g = normal();
                for (int64_t i = 0; i < shape.width; i++) {
                    row[static_cast<size_t>(i)] += g * directions[static_cast<size_t>((j * shape.width) + i)];
                }
            }
            x.insert(x.end(), row.begin(), row.end());
        }
        ggml_backend_tensor_set(input, x.data(), 0, x.size() * sizeof(float));
    }

    void make_weights() {
        for (size_t map = 0; map < weights.size(); map++) {
            std::vector<float> w(static_cast<size_t>(ggml_nelements(weights[map])));
            for (float & value : w) {
                value = normal() / std::sqrt(static_cast<float>(shape.width));
            }
            const std::vector<char> bytes = stored(shape.weights, w, shape.width);
            ggml_backend_tensor_set(weights[map], bytes.data(), 0, bytes.size());
            w = read_back(shape.weights, bytes, w.size());
            images.push_back(stored(shape.images, image_of(w), shape.k));
            rough.push_back(stored(GGML_TYPE_Q4_0, w, shape.width));
            const std::vector<float> copy = read_back(GGML_TYPE_Q4_0, rough.back(), w.size());
            std::transform(w.begin(), w.end(), copy.begin(), w.begin(), std::minus<>());
            rest.push_back(stored(shape.images, image_of(w), shape.k));
        }
    }

    std::vector<float> image_of(const std::vector<float> & w) const {
        std::vector<float> image;
        for (size_t row = 0; row < w.size(); row += static_cast<size_t>(shape.width)) {
            for (int64_t j = 0; j < shape.k; j++) {
                double sum = 0.0;
                for (int64_t i = 0; i < shape.width; i++) {
                    sum += static_cast<double>(w[row + static_cast<size_t>(i)]) *
                           directions[static_cast<size_t>((j * shape.width) + i)];
                }
                image.push_back(static_cast<float>(sum));
            }
        }
        return image;
    }

    std::mt19937 random;
    ggml_backend_ptr engine;
    ggml_context_ptr context;
    ggml_backend_buffer_ptr buffer;
    ggml_tensor * input = nullptr;
    std::vector<ggml_tensor *> weights, outputs;
    std::vector<float> directions, x;
    std::vector<char> basis_bytes;
    std::vector<std::vector<char>> images, rough, rest;
    std::vector<Distance> distances;
};

Shape some_shape(std::mt19937 & random) {
    const auto one_of = [&](auto values) {
        const std::vector<typename decltype(values)::value_type> all = values;
        return all[std::uniform_int_distribution<size_t>(0, all.size() - 1)(random)];
    };
    Shape shape;
    shape.width = one_of(std::initializer_list<int64_t>{ 96, 160, 576 });
    shape.k = one_of(std::initializer_list<int64_t>{ 32, 64 });
    shape.tokens = one_of(std::initializer_list<int64_t>{ 1, 2, 3, 8, 33 });
    shape.outputs = { one_of(std::initializer_list<int64_t>{ 32, 64, 192 }),
                      one_of(std::initializer_list<int64_t>{ 8, 96 }) };
    shape.weights = one_of(std::initializer_list<ggml_type>{ GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_Q8_0,
                                                             GGML_TYPE_Q4_0, GGML_TYPE_Q4_1 });
    shape.images =
        one_of(std::initializer_list<ggml_type>{ GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0 });
    shape.basis = one_of(std::initializer_list<ggml_type>{ GGML_TYPE_F32, GGML_TYPE_F16 });
    shape.near = one_of(std::initializer_list<double>{ 0.0, 0.5, 1.0 });
    return shape;
}

TEST(GatedInput, TokensThatPassGoThroughTheImageAndAllOthersKeepEveryBit) {
    int64_t passed = 0;
    int64_t refused = 0;
    for (unsigned i = 0; i < static_cast<unsigned>(test::cases(60)); i++) {
        std::mt19937 random(i);
        const Shape shape = some_shape(random);
        TwoMaps two(shape, i);
        const auto bare = two.bare();
        GatedInput::Counts counts;
        const auto found = two.gated({ 0.1F }, counts);
        ASSERT_EQ(counts.tokens, shape.tokens);
        const bool rounded = shape.images != GGML_TYPE_F32; // the engine rounds coordinates as well
        for (size_t map = 0; map < found.size(); map++) {
            for (int64_t token = 0; token < shape.tokens; token++) {
                for (int64_t o = 0; o < shape.outputs[map]; o++) {
                    const auto at = static_cast<size_t>((token * shape.outputs[map]) + o);
                    if (two.is_near(token)) {
                        ASSERT_NEAR(found[map][at], two.through(map, token, o), rounded ? 0.1 : 1e-2) << "case " << i;
                    } else {
                        ASSERT_EQ(found[map][at], bare[map][at]) << "case " << i << ", token " << token;
                    }
                }
            }
        }
        passed += counts.passed;
        refused += counts.tokens - counts.passed;
    }
    EXPECT_GT(passed, 5);
    EXPECT_GT(refused, 5);
}

TEST(GatedInput, AGateThatNeverPassesChangesNothing) {
    for (unsigned i = 0; i < static_cast<unsigned>(test::cases(30)); i++) {
        std::mt19937 random(i);
        Shape shape = some_shape(random);
        TwoMaps two(shape, i);
        const auto bare = two.bare();
        GatedInput::Counts counts;
        EXPECT_EQ(two.gated({}, counts), bare) << "case " << i;
        EXPECT_EQ(counts.passed, 0);
    }
}

TEST(GatedInput, TokensBetweenTakeTheRoughCopyAndWhatItLacks) {
    GatedInput::Counts all;
    for (unsigned i = 0; i < static_cast<unsigned>(test::cases(60)); i++) {
        std::mt19937 random(i);
        Shape shape = some_shape(random);
        shape.rough = true;
        shape.width = std::max<int64_t>(shape.width, 160); // far tokens are far
        shape.near = i % 3 == 0 ? 0.0 : 0.4;
        shape.middle = i % 4 == 0 ? 1.0 - shape.near : 0.3;
        TwoMaps two(shape, i);
        const auto bare = two.bare();
        GatedInput::Counts counts;
        const auto found = two.gated({ 0.1F, 0.35F }, counts);
        const bool rounded = shape.images != GGML_TYPE_F32;
        for (size_t map = 0; map < found.size(); map++) {
            for (int64_t token = 0; token < shape.tokens; token++) {
                for (int64_t o = 0; o < shape.outputs[map]; o++) {
                    const float value = found[map][static_cast<size_t>((token * shape.outputs[map]) + o)];
                    if (two.is_near(token)) {
                        ASSERT_NEAR(value, two.through(map, token, o), rounded ? 0.1 : 1e-2) << "case " << i;
                    } else if (two.distance(token) == TwoMaps::Distance::middle) { // the engine rounds inputs as well
                        ASSERT_NEAR(value, two.through_rough(map, token, o), 0.1) << "case " << i;
                    } else {
                        ASSERT_EQ(value, bare[map][static_cast<size_t>((token * shape.outputs[map]) + o)])
                            << "case " << i;
                    }
                }
            }
        }
        all.tokens += counts.tokens;
        all.passed += counts.passed;
        all.rough += counts.rough;
    }
    EXPECT_GT(all.passed, 5);
    EXPECT_GT(all.rough, 5);
    EXPECT_GT(all.tokens - all.passed - all.rough, 5);
}

TEST(GatedInput, WholeSpaceIsExact) {
    Shape shape;
    shape.width = shape.k = 64;
    TwoMaps two(shape, 1);
    const auto bare = two.bare();
    GatedInput::Counts counts;
    const auto found = two.gated({ 0.05F }, counts);
    EXPECT_EQ(counts.passed, shape.tokens);
    for (size_t map = 0; map < found.size(); map++) {
        for (size_t i = 0; i < found[map].size(); i++) {
            EXPECT_NEAR(found[map][i], bare[map][i], 1e-4);
        }
    }
}

TEST(GatedInput, OtherShapesAreRefused) {
    TwoMaps two(Shape(), 1);
    GatedMaps wanted = two.maps({ 0.1F });
    wanted.basis.columns += 32;
    EXPECT_NE(gating_objection(*two.graph, wanted), nullptr);
    wanted = two.maps({ 0.1F });
    wanted.maps[1].image.rows++;
    EXPECT_NE(gating_objection(*two.graph, wanted), nullptr);
    wanted = two.maps({ 0.1F });
    wanted.maps[0].image.columns--;
    EXPECT_NE(gating_objection(*two.graph, wanted), nullptr);
    wanted.maps.clear();
    EXPECT_NE(gating_objection(*two.graph, wanted), nullptr);
    wanted = two.maps({ 0.1F, 0.5F }); // no rough copies are there
    EXPECT_NE(gating_objection(*two.graph, wanted), nullptr);
}

} // namespace
} // namespace cascade::graph
