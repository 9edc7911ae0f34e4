#include "graph/gated_input.h"

#include <algorithm>
#include <cstring>

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
        if (input->ne[0] != wanted.basis.columns || map.image.columns != wanted.basis.rows ||
            node->ne[0] != map.image.rows) {
            return "the sidecar's matrices have other shapes";
        }
    }
    return input == nullptr ? "no maps" : nullptr;
}

int64_t scratch_floats(const ggml_cgraph & graph, const GatedMaps & wanted) {
    int64_t widest = 0;
    for (const GatedMap & map : wanted.maps) {
        widest = std::max(widest, graph.nodes[map.node]->ne[0]);
    }
    const int64_t tokens = graph.nodes[wanted.maps.front().node]->ne[1] + 1; // refused_together
    return padded(1) + (2 * padded(wanted.basis.rows * tokens)) + padded(wanted.basis.columns * tokens) +
           padded(widest * tokens);
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
    refused_rows = matrix_tensor(GGML_TYPE_F32, wanted.basis.columns, tokens, take(wanted.basis.columns * tokens));
    outputs = scratch;
    for (size_t i = 0; i < maps.size(); i++) {
        make_map(*original.nodes[wanted.maps[i].node], wanted.maps[i], maps[i]);
    }
}

void GatedInput::make_map(const ggml_tensor & original, const GatedMap & from, Map & map) {
    map.output = static_cast<float *>(original.data);
    map.image = leaf(from.image);
    map.through = product(map.image, &coordinates, map.output);
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
    nodes.insert(nodes.end(), { &maps[map].through, &maps[map].exactly, &maps[map].scatter });
    return nodes;
}

GatedInput::Counts GatedInput::finish() {
    const Counts counts = { static_cast<int64_t>(split.passed.size() + split.refused.size()),
                            static_cast<int64_t>(split.passed.size()) };
    split.passed.clear();
    split.refused.clear();
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
}

// The engine multiplies a single row of floats by another kernel than several, with other rounding: one that comes from
// a batch is sent twice.
int64_t GatedInput::refused_together() const {
    return std::max<int64_t>(2, static_cast<int64_t>(split.refused.size()));
}

void GatedInput::apart(Map & map) {
    const auto passed = static_cast<int64_t>(split.passed.size());
    set_rows(map.through, passed);
    set_rows(map.exactly, refused_together());
    map.through.src[1] = &passed_rows;
    map.exactly.src[1] = &refused_rows;
    map.through.data = outputs;
    map.exactly.data = outputs + (passed * map.exactly.ne[0]);
    compute(map.through, true);
    compute(map.exactly, true);
    compute(map.scatter, true);
}

void GatedInput::gather() {
    set_rows(passed_rows, static_cast<int64_t>(split.passed.size()));
    set_rows(refused_rows, refused_together());
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
    subspace::split_tokens(inputs, inside, tokens, wanted.epsilon, split);
    const bool both = !split.passed.empty() && !split.refused.empty();
    if (both) {
        gather();
    }
    for (Map & map : maps) {
        both ? apart(map) : direct(map);
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
    const size_t passed = self.split.passed.size();
    const size_t rows = passed + self.split.refused.size();
    const size_t first = rows * static_cast<size_t>(part) / static_cast<size_t>(parts);
    const size_t last = rows * (static_cast<size_t>(part) + 1) / static_cast<size_t>(parts);
    for (size_t row = first; row < last; row++) {
        const int32_t token = row < passed ? self.split.passed[row] : self.split.refused[row - passed];
        std::memcpy(map.output + (static_cast<size_t>(token) * size), self.outputs + (row * size),
                    size * sizeof(float));
    }
}

} // namespace cascade::graph
