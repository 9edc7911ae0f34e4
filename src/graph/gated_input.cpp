#include "graph/gated_input.h"

#include <algorithm>
#include <cstring>
#include <functional>

namespace cascade::graph {

namespace {

constexpr int64_t floats_of_line = 16;

int64_t padded(int64_t floats) { return (floats + floats_of_line - 1) / floats_of_line * floats_of_line; }

void set_rows(ggml_tensor & tensor, int64_t rows) {
    tensor.ne[1] = rows;
    tensor.nb[2] = tensor.nb[1] * static_cast<size_t>(rows);
    tensor.nb[3] = tensor.nb[2];
}

ggml_tensor matrix_tensor(ggml_type type, int64_t columns, int64_t rows, const void * data) {
    ggml_tensor tensor = {};
    tensor.type = type;
    tensor.ne[0] = columns;
    tensor.ne[2] = tensor.ne[3] = 1;
    tensor.nb[0] = ggml_type_size(type);
    tensor.nb[1] = ggml_row_size(type, columns);
    set_rows(tensor, rows);
    tensor.data = const_cast<void *>(data);
    return tensor;
}

ggml_tensor leaf(const Matrix & matrix) { return matrix_tensor(matrix.type, matrix.columns, matrix.rows, matrix.data); }

ggml_tensor product(ggml_tensor & left, const ggml_tensor * right, float * out) {
    ggml_tensor node = matrix_tensor(GGML_TYPE_F32, left.ne[1], right->ne[1], out);
    node.op = GGML_OP_MUL_MAT;
    node.src[0] = &left;
    node.src[1] = const_cast<ggml_tensor *>(right);
    node.flags = GGML_TENSOR_FLAG_COMPUTE;
    return node;
}

void compute(ggml_tensor & node, bool wanted) {
    node.flags = wanted ? node.flags | GGML_TENSOR_FLAG_COMPUTE : node.flags & ~GGML_TENSOR_FLAG_COMPUTE;
}

ggml_tensor custom(ggml_custom_op_t function, void * self, void * data) {
    ggml_tensor node = matrix_tensor(GGML_TYPE_F32, 1, 1, data);
    node.op = GGML_OP_CUSTOM;
    const ggml_custom_op_params params = { function, GGML_N_TASKS_MAX, self };
    std::memcpy(node.op_params, &params, sizeof(params));
    node.flags = GGML_TENSOR_FLAG_COMPUTE;
    return node;
}

void copy_rows(const ggml_tensor & from, const std::vector<int32_t> & rows, ggml_tensor & to) {
    auto * out = static_cast<char *>(to.data);
    for (const int32_t row : rows) {
        std::memcpy(out, static_cast<const char *>(from.data) + (static_cast<size_t>(row) * from.nb[1]), to.nb[1]);
        out += to.nb[1];
    }
}

bool is_plain(const ggml_tensor * tensor) {
    return tensor->type == GGML_TYPE_F32 && ggml_is_contiguous(tensor) && tensor->ne[2] == 1 && tensor->ne[3] == 1;
}

int64_t widest_output(const ggml_cgraph & graph, const GatedMaps & wanted) {
    int64_t widest = 0;
    for (const GatedMap & map : wanted.maps) {
        widest = std::max(widest, graph.nodes[map.node]->ne[0]);
    }
    return widest;
}

int64_t size_of(const std::vector<int32_t> & rows) { return static_cast<int64_t>(rows.size()); }

} // namespace

const char * gating_objection(const ggml_cgraph & graph, const GatedMaps & wanted) {
    const ggml_tensor * input = nullptr;
    for (const GatedMap & map : wanted.maps) {
        const ggml_tensor * node = graph.nodes[map.node];
        if (node->op != GGML_OP_MUL_MAT || (node->flags & GGML_TENSOR_FLAG_COMPUTE) == 0) {
            return "not a product of this graph";
        }
        if (input != nullptr && node->src[1] != input) {
            return "its maps don't share one input";
        }
        input = node->src[1];
        if (!is_plain(node) || !is_plain(input)) {
            return "input or output is laid out in another way";
        }
        const bool fits = input->ne[0] == wanted.basis.columns && map.image.columns == wanted.basis.rows &&
                          node->ne[0] == map.image.rows;
        const bool rough_fits =
            !wanted.has_rough() || (map.rough.columns == wanted.basis.columns && map.rough.rows == map.image.rows &&
                                    map.rest.columns == map.image.columns && map.rest.rows == map.image.rows);
        if (!fits || !rough_fits) {
            return "the sidecar's matrices have other shapes";
        }
    }
    return input == nullptr ? "no maps" : nullptr;
}

int64_t scratch_floats(const ggml_cgraph & graph, const GatedMaps & wanted) {
    const int64_t widest = widest_output(graph, wanted);
    const int64_t tokens = graph.nodes[wanted.maps.front().node]->ne[1] + 1; // refused_together
    const int64_t kinds = wanted.has_rough() ? 2 : 1;                        // of gathered rows
    return padded(1) + ((1 + kinds) * padded(wanted.basis.rows * tokens)) +
           (kinds * (padded(wanted.basis.columns * tokens) + padded(widest * tokens)));
}

GatedInput::GatedInput(const ggml_cgraph & original, GatedMaps to_gate, float * scratch)
    : wanted(std::move(to_gate)), input(original.nodes[wanted.maps.front().node]->src[1]), tokens(input->ne[1]),
      basis(leaf(wanted.basis)), maps(wanted.maps.size()) {
    split.reserve(tokens);
    const auto take = [&](int64_t floats) {
        float * place = scratch;
        scratch += padded(floats);
        return place;
    };
    gate_node = custom(run_gate, this, take(1));
    coordinates = product(basis, input, take(wanted.basis.rows * tokens));
    passed_rows = matrix_tensor(GGML_TYPE_F32, wanted.basis.rows, tokens, take(wanted.basis.rows * tokens));
    refused_rows =
        matrix_tensor(GGML_TYPE_F32, wanted.basis.columns, tokens, take(wanted.basis.columns * (tokens + 1)));
    if (wanted.has_rough()) {
        rest_rows = matrix_tensor(GGML_TYPE_F32, wanted.basis.rows, tokens, take(wanted.basis.rows * tokens));
        rough_rows = matrix_tensor(GGML_TYPE_F32, wanted.basis.columns, tokens, take(wanted.basis.columns * tokens));
        rest_outputs = take(widest_output(original, wanted) * tokens);
    }
    outputs = scratch;
    for (size_t i = 0; i < maps.size(); i++) {
        make_map(*original.nodes[wanted.maps[i].node], wanted.maps[i], maps[i]);
    }
}

void GatedInput::make_map(const ggml_tensor & original, const GatedMap & from, Map & map) {
    map.output = static_cast<float *>(original.data);
    map.image = leaf(from.image);
    map.through = product(map.image, &coordinates, map.output);
    if (wanted.has_rough()) {
        map.rough = leaf(from.rough);
        map.rest = leaf(from.rest);
        map.through_rough = product(map.rough, &rough_rows, outputs);
        map.through_rest = product(map.rest, &rest_rows, rest_outputs);
    }
    map.exactly = original;
    map.scatter = custom(run_scatter, &map, map.output);
    map.of = this;
    direct(map);
}

std::vector<ggml_tensor *> GatedInput::nodes_instead(size_t map) {
    std::vector<ggml_tensor *> nodes;
    if (map == 0) {
        nodes = { &coordinates, &gate_node };
    }
    nodes.push_back(&maps[map].through);
    if (wanted.has_rough()) {
        nodes.insert(nodes.end(), { &maps[map].through_rough, &maps[map].through_rest });
    }
    nodes.insert(nodes.end(), { &maps[map].exactly, &maps[map].scatter });
    return nodes;
}

GatedInput::Counts GatedInput::finish() {
    const Counts counts = { size_of(split.passed) + size_of(split.rough) + size_of(split.refused),
                            size_of(split.passed), size_of(split.rough) };
    split.clear();
    std::for_each(maps.begin(), maps.end(), [this](Map & map) { direct(map); });
    return counts;
}

// One kind of tokens only: straight to the map's output. All rows: what the engine plans memory for.
void GatedInput::direct(Map & map) {
    set_rows(map.through, tokens);
    set_rows(map.exactly, tokens);
    map.through.src[1] = &coordinates;
    map.exactly.src[1] = const_cast<ggml_tensor *>(input);
    map.through.data = map.exactly.data = map.output;
    compute(map.through, split.refused.empty());
    compute(map.exactly, split.passed.empty());
    compute(map.scatter, false);
    if (wanted.has_rough()) {
        set_rows(rough_rows, tokens);
        set_rows(rest_rows, tokens);
        set_rows(map.through_rough, tokens);
        set_rows(map.through_rest, tokens);
        compute(map.through_rough, false);
        compute(map.through_rest, false);
    }
}

// The engine multiplies a single row of floats by another kernel than several, with other rounding: one that comes from
// a batch is sent twice.
int64_t GatedInput::refused_together() const { return std::max<int64_t>(2, size_of(split.refused)); }

void GatedInput::apart(Map & map) {
    const int64_t passed = size_of(split.passed);
    const int64_t rough = size_of(split.rough);
    const int64_t size = map.exactly.ne[0];
    set_rows(map.through, passed);
    set_rows(map.exactly, refused_together());
    map.through.src[1] = &passed_rows;
    map.exactly.src[1] = &refused_rows;
    map.through.data = outputs;
    map.exactly.data = outputs + ((passed + rough) * size);
    compute(map.through, passed > 0);
    compute(map.exactly, !split.refused.empty());
    compute(map.scatter, true);
    if (wanted.has_rough()) {
        set_rows(map.through_rough, rough);
        set_rows(map.through_rest, rough);
        map.through_rough.data = outputs + (passed * size);
        compute(map.through_rough, rough > 0);
        compute(map.through_rest, rough > 0);
    }
}

void GatedInput::gather() {
    set_rows(passed_rows, size_of(split.passed));
    set_rows(refused_rows, refused_together());
    if (wanted.has_rough()) {
        set_rows(rest_rows, size_of(split.rough));
        set_rows(rough_rows, size_of(split.rough));
        copy_rows(coordinates, split.rough, rest_rows);
        copy_rows(*input, split.rough, rough_rows);
    }
    copy_rows(coordinates, split.passed, passed_rows);
    copy_rows(*input, split.refused, refused_rows);
    if (split.refused.size() == 1) {
        std::memcpy(static_cast<char *>(refused_rows.data) + refused_rows.nb[1], refused_rows.data, refused_rows.nb[1]);
    }
}

void GatedInput::gate() {
    const subspace::FloatRows inputs = { static_cast<const float *>(input->data), input->ne[0], input->ne[0] };
    const subspace::FloatRows inside = { static_cast<const float *>(coordinates.data), coordinates.ne[0],
                                         coordinates.ne[0] };
    subspace::split_tokens(inputs, inside, tokens, wanted.bounds, split);
    const bool one_kind = split.rough.empty() && (split.passed.empty() || split.refused.empty());
    if (!one_kind) {
        gather();
    }
    for (Map & map : maps) {
        one_kind ? direct(map) : apart(map);
    }
}

// One thread decides; the engine's barrier after the node shows the others what was decided.
void GatedInput::run_gate(ggml_tensor * /*node*/, int part, int /*parts*/, void * self) noexcept {
    if (part == 0) {
        static_cast<GatedInput *>(self)->gate();
    }
}

void GatedInput::run_scatter(ggml_tensor * /*node*/, int part, int parts, void * of_map) noexcept {
    const auto & map = *static_cast<const Map *>(of_map);
    const GatedInput & self = *map.of;
    const auto size = static_cast<size_t>(map.exactly.ne[0]);
    const float * from = self.outputs;
    size_t row = 0; // of all; each part takes every `parts`-th
    for (const std::vector<int32_t> * kind : { &self.split.passed, &self.split.rough, &self.split.refused }) {
        for (size_t i = 0; i < kind->size(); i++, row++, from += size) {
            if (row % static_cast<size_t>(parts) != static_cast<size_t>(part)) {
                continue;
            }
            float * to = map.output + (static_cast<size_t>((*kind)[i]) * size);
            std::memcpy(to, from, size * sizeof(float));
            if (kind == &self.split.rough) {
                std::transform(to, to + size, self.rest_outputs + (i * size), to, std::plus<>());
            }
        }
    }
}

} // namespace cascade::graph
