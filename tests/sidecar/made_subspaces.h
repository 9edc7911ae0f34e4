// Subspaces for tests, with tensors of every type.
#pragma once

#include "sidecar/samples.h"
#include "sidecar/write_subspaces.h"

#include <cmath>
#include <deque>

namespace cascade::sidecar::test {

class MadeSubspaces {
  public:
    MadeSubspaces() {
        Subspace & attention = add("blk.0.attn_q", 0, 40, 32, GGML_TYPE_F16);
        attention.figures = { { { { 8, 0.5F }, { 16, 0.75F }, { 32, 0.9F } } },
                              0.1F,
                              { 0.1F, 0.1F, 0.2F, 0.2F, 0.3F, 0.3F, 0.4F, 0.5F, 0.9F } };
        add_image(attention, "blk.0.attn_q.weight", GGML_TYPE_Q8_0, 6);
        add_image(attention, "blk.0.attn_k.weight", GGML_TYPE_Q4_0, 3);
        add_image(attention, "blk.0.attn_v.weight", GGML_TYPE_F16, 1);
        Subspace & mlp = add("blk.3.ffn_down", 3, 5, 2, GGML_TYPE_F32);
        mlp.figures = { { { { 1, 0.25F }, { 2, 1.0F } } }, 0.0F, {}, 0.5F };
        add_image(mlp, "blk.3.ffn_down.weight", GGML_TYPE_F32, 3);
        Subspace & rough = add("blk.2.ffn_up", 2, 256, 2, GGML_TYPE_F32);
        rough.figures.rough_error = 0.3F;
        add_image(rough, "blk.2.ffn_up.weight", GGML_TYPE_F32, 3, GGML_TYPE_Q2_K);
        add_image(rough, "blk.2.ffn_gate.weight", GGML_TYPE_F32, 2, GGML_TYPE_Q3_K);
    }

    Bytes encoded() const { return encode(binding, calibration, subspaces); }

    float & number(size_t tensor, size_t at) { return reinterpret_cast<float *>(data.at(tensor).data())[at]; }
    uint16_t & half(size_t tensor, size_t at) { return reinterpret_cast<uint16_t *>(data.at(tensor).data())[at]; }

    Sidecar binding = sample();
    Calibration calibration = { "wiki.train.raw", "2026-02-01", 2048, 16384 };
    std::vector<Subspace> subspaces;

  private:
    TensorView tensor(ggml_type type, int64_t columns, int64_t rows) {
        std::vector<float> values(static_cast<size_t>(columns * rows));
        for (size_t i = 0; i < values.size(); i++) { // rows of unit length
            values[i] = (i % 3 == 0 ? -1.0F : 1.0F) / std::sqrt(static_cast<float>(columns));
        }
        Bytes & bytes = data.emplace_back(ggml_row_size(type, columns) * static_cast<size_t>(rows));
        ggml_quantize_chunk(type, values.data(), bytes.data(), 0, rows, columns, nullptr);
        return { type, columns, rows, bytes.data(), bytes.size() };
    }
    Subspace & add(const std::string & input, int layer, uint32_t width, uint32_t k, ggml_type type) {
        subspaces.reserve(3);
        Subspace & added = subspaces.emplace_back();
        added.input = input;
        added.layer = layer;
        added.width = width;
        added.k = k;
        added.basis = tensor(type, width, k);
        return added;
    }
    void add_image(Subspace & to, const std::string & weight, ggml_type type, int64_t outputs,
                   ggml_type rough = GGML_TYPE_COUNT) {
        Image & image = to.images.emplace_back();
        image.weight = weight;
        image.tensor = tensor(type, to.k, outputs);
        if (rough != GGML_TYPE_COUNT) {
            image.rough = tensor(rough, to.width, outputs);
            image.rest = tensor(type, to.k, outputs);
        }
    }

    std::deque<Bytes> data; // of the tensors, in the file's order; stays where it is
};

} // namespace cascade::sidecar::test
