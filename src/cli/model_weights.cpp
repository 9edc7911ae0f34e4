#include "cli/model_weights.h"

#include "cli/weights.h"

#include "ggml-cpp.h"
#include "gguf.h"

#include <algorithm>
#include <stdexcept>

namespace cascade::cli {

ModelWeights::ModelWeights(const llama_model * model, const std::string & path) {
    for (const std::string & name : files_of(model, path)) {
        const gguf_context_ptr file(gguf_init_from_file(name.c_str(), { true, nullptr }));
        files.emplace_back(name, std::ios::binary);
        if (!file || !files.back()) {
            throw std::runtime_error("can't read '" + name + "'");
        }
        for (int64_t i = 0; i < gguf_get_n_tensors(file.get()); i++) {
            const int64_t * sides = gguf_get_tensor_ne(file.get(), i);
            if (sides[2] == 1 && sides[3] == 1) {
                places[gguf_get_tensor_name(file.get(), i)] = { files.size() - 1,
                                                                gguf_get_data_offset(file.get()) +
                                                                    gguf_get_tensor_offset(file.get(), i),
                                                                gguf_get_tensor_type(file.get(), i),
                                                                { sides[0], sides[1] } };
            }
        }
    }
}

const ModelWeights::Place & ModelWeights::place(const std::string & weight) const {
    const auto found = places.find(weight);
    if (found == places.end()) {
        throw std::runtime_error("the model's file has no " + weight);
    }
    return found->second;
}

ModelWeights::Shape ModelWeights::shape(const std::string & weight) const { return place(weight).shape; }

void ModelWeights::read(const std::string & weight, int64_t first_row, int64_t count, float * out) {
    const Place & from = place(weight);
    const size_t row_bytes = ggml_row_size(from.type, from.shape.columns);
    raw.resize(row_bytes * static_cast<size_t>(count));
    std::ifstream & file = files[from.file];
    file.seekg(static_cast<std::streamoff>(from.offset + (row_bytes * static_cast<size_t>(first_row))));
    if (!file.read(raw.data(), static_cast<std::streamsize>(raw.size()))) {
        throw std::runtime_error("can't read " + weight + " from the model's file");
    }
    if (from.type == GGML_TYPE_F32) {
        std::copy(raw.begin(), raw.end(), reinterpret_cast<char *>(out));
        return;
    }
    const ggml_to_float_t to_float = ggml_get_type_traits(from.type)->to_float;
    if (to_float == nullptr) {
        throw std::runtime_error(weight + " is of type " + ggml_type_name(from.type) + ", which has no way to floats");
    }
    to_float(raw.data(), out, count * from.shape.columns);
}

bool ModelWeights::each(const std::string & weight,
                        const std::function<bool(const subspace::MatrixView & rows)> & take) {
    constexpr int64_t values_at_once = int64_t{ 1 } << 22U;
    const Shape size = shape(weight);
    const int64_t at_once = std::clamp<int64_t>(values_at_once / size.columns, 1, size.rows);
    std::vector<float> rows(static_cast<size_t>(at_once * size.columns));
    for (int64_t first = 0; first < size.rows; first += at_once) {
        const int64_t some = std::min(at_once, size.rows - first);
        read(weight, first, some, rows.data());
        if (!take({ rows.data(), some, size.columns, size.columns })) {
            return false;
        }
    }
    return true;
}

} // namespace cascade::cli
