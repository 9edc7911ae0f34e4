// Writes a llama model whose linear maps read from known subspaces (support/subspace_weights.h), and the sidecar that a
// perfect calibration of it would make: model.gguf and model.cascade.gguf in a folder.
//
// Token 259 and those behind it are one character each, U+4E00 plus the token's number, so that a text can be made of
// wanted tokens; no other characters merge, and none is put in front.
#include "cli/calibration_images.h"
#include "cli/engine.h"
#include "cli/fingerprints.h"
#include "support/subspace_weights.h"

#include "ggml-cpp.h"
#include "gguf.h"

#include <CLI/CLI.hpp>
#include <deque>
#include <fmt/format.h>
#include <stdexcept>
#include <thread>

namespace {

using cascade::test::Matrix;
using cascade::test::SubspaceShape;

constexpr int first_byte = 3; // after unknown, begin and end
constexpr int first_character = first_byte + 256;
constexpr int code_of_character = 0x4E00;

enum TokenType : int32_t { ordinary = 1, unknown = 2, control = 3, byte = 6 }; // the engine's numbers

// The engine's file, with its weights in q8_0; what is only looked up or not multiplied stays as it is.
class ModelFile {
  public:
    explicit ModelFile(const SubspaceShape & shape)
        : file(gguf_init_empty()), tensors(ggml_init({ most_tensors * ggml_tensor_overhead(), nullptr, true })) {
        gguf_set_val_str(file.get(), "general.architecture", "llama");
        gguf_set_val_str(file.get(), "general.name", "activations in known subspaces");
        key("context_length", 4096);
        key("vocab_size", SubspaceShape::vocabulary);
        key("embedding_length", shape.width);
        key("block_count", shape.layers);
        key("feed_forward_length", shape.inner());
        key("attention.head_count", shape.heads());
        key("attention.head_count_kv", shape.heads());
        key("rope.dimension_count", SubspaceShape::head_size);
        gguf_set_val_f32(file.get(), "llama.attention.layer_norm_rms_epsilon", 1e-5F);
        add_tokens();
    }

    void add(const std::string & name, const Matrix & matrix, ggml_type type = GGML_TYPE_Q8_0) {
        ggml_tensor * tensor = ggml_new_tensor_2d(tensors.get(), type, matrix.columns, matrix.rows);
        ggml_set_name(tensor, name.c_str());
        tensor->data = bytes.emplace_back(ggml_nbytes(tensor)).data();
        ggml_quantize_chunk(type, matrix.values.data(), tensor->data, 0, matrix.rows, matrix.columns, nullptr);
        gguf_add_tensor(file.get(), tensor);
    }

    void add_norm(const std::string & name, int64_t width) {
        Matrix ones(1, width);
        std::fill(ones.values.begin(), ones.values.end(), 1.0F);
        add(name, ones, GGML_TYPE_F32);
    }

    void write(const std::string & path) const {
        if (!gguf_write_to_file(file.get(), path.c_str(), false)) {
            throw std::runtime_error("can't write '" + path + "': give a folder that is there with -o");
        }
    }

  private:
    static constexpr size_t most_tensors = 4096;

    void key(const std::string & name, int64_t value) {
        gguf_set_val_u32(file.get(), ("llama." + name).c_str(), static_cast<uint32_t>(value));
    }

    void add_token(std::string text, TokenType type) {
        texts.push_back(std::move(text));
        types.push_back(type);
    }

    void add_tokens() {
        add_token("<unk>", unknown);
        add_token("<s>", control);
        add_token("</s>", control);
        for (int i = 0; i < first_character - first_byte; i++) {
            add_token(fmt::format("<0x{:02X}>", i), byte);
        }
        for (int i = first_character; i < SubspaceShape::vocabulary; i++) {
            const int code = code_of_character + i;
            add_token({ static_cast<char>(0xE0 | (code >> 12)), static_cast<char>(0x80 | ((code >> 6) & 0x3F)),
                        static_cast<char>(0x80 | (code & 0x3F)) },
                      ordinary);
        }
        std::vector<const char *> pointers;
        std::transform(texts.begin(), texts.end(), std::back_inserter(pointers),
                       [](const auto & t) { return t.c_str(); });
        const std::vector<float> scores(texts.size(), 0.0F);
        gguf_set_val_str(file.get(), "tokenizer.ggml.model", "llama");
        gguf_set_arr_str(file.get(), "tokenizer.ggml.tokens", pointers.data(), pointers.size());
        gguf_set_arr_data(file.get(), "tokenizer.ggml.scores", GGUF_TYPE_FLOAT32, scores.data(), scores.size());
        gguf_set_arr_data(file.get(), "tokenizer.ggml.token_type", GGUF_TYPE_INT32, types.data(), types.size());
        gguf_set_val_bool(file.get(), "tokenizer.ggml.add_bos_token", false);
        gguf_set_val_bool(file.get(), "tokenizer.ggml.add_space_prefix", false);
    }

    gguf_context_ptr file;
    ggml_context_ptr tensors;
    std::deque<std::vector<char>> bytes;
    std::vector<std::string> texts;
    std::vector<int32_t> types;
};

// All that a calibration would find, known beforehand.
class KnownSubspaces {
  public:
    explicit KnownSubspaces(const SubspaceShape & a_shape) : shape(a_shape) {}

    // An input of the residual stream: as far from its subspace as the token's embedding, or nearer.
    void add_stream(int layer, const std::vector<std::string> & maps, const Matrix & basis) {
        std::vector<float> noise(SubspaceShape::vocabulary);
        for (size_t token = 0; token < noise.size(); token++) {
            noise[token] = shape.noise(static_cast<int64_t>(token));
        }
        add(layer, maps, basis, std::move(noise));
    }

    // One that lies in it whatever the token.
    void add_inner(int layer, const std::string & map, const Matrix & basis) { add(layer, { map }, basis, { 0.0F }); }

    void write(const std::string & model, const std::string & sidecar, cascade::Team & team) {
        cascade::cli::CalibrateOptions options;
        options.model = model;
        options.sidecar = sidecar;
        options.text = "by construction";
        options.type = GGML_TYPE_Q8_0;
        result.date = "2026-01-01";
        const std::vector<uint64_t> fingerprints = cascade::cli::fingerprints_of(model); // starts the engine
        const llama_model_ptr loaded = cascade::cli::load_model(model, false);
        cascade::cli::Progress progress;
        cascade::cli::ModelWeights weights(loaded.get(), model);
        cascade::cli::CalibrationImages images(options, result, fingerprints, weights);
        images.write([&](size_t input) { return bases[input]; }, team, progress);
    }

  private:
    void add(int layer, const std::vector<std::string> & maps, const Matrix & basis, std::vector<float> residuals) {
        cascade::cli::CalibratedInput & input = result.inputs.emplace_back();
        input.input.name = fmt::format("blk.{}.{}", layer, maps.front());
        input.input.kind = maps.front();
        input.input.layer = layer;
        input.input.width = basis.columns;
        for (const std::string & map : maps) {
            input.input.weights.push_back(fmt::format("blk.{}.{}.weight", layer, map));
        }
        input.k = basis.rows;
        double outside = 0.0;
        for (const float residual : residuals) {
            outside += static_cast<double>(residual * residual) / static_cast<double>(residuals.size());
        }
        for (int64_t i = 1; i <= basis.rows; i++) {
            input.values.push_back((1.0 - outside) * static_cast<double>(i) / static_cast<double>(basis.rows));
        }
        input.held_out = std::move(residuals);
        bases.emplace_back().basis = { basis.columns, 1.0, {}, basis.values };
    }

    SubspaceShape shape;
    cascade::cli::CalibrateResult result;
    std::vector<cascade::cli::KeptBasis> bases;
};

void write_all(const SubspaceShape & shape, const std::string & folder) {
    cascade::Team team(static_cast<int>(std::max(1U, std::thread::hardware_concurrency())));
    cascade::test::SubspaceWeights weights(shape, team);
    ModelFile file(shape);
    KnownSubspaces known(shape);
    file.add("token_embd.weight", weights.embeddings(), GGML_TYPE_F32);
    for (int layer = 0; layer < shape.layers; layer++) {
        const std::string prefix = fmt::format("blk.{}.", layer);
        const auto attention = weights.attention();
        file.add_norm(prefix + "attn_norm.weight", shape.width);
        file.add(prefix + "attn_q.weight", attention.query);
        file.add(prefix + "attn_k.weight", attention.key);
        file.add(prefix + "attn_v.weight", attention.value);
        file.add(prefix + "attn_output.weight", attention.output);
        known.add_stream(layer, { "attn_q", "attn_k", "attn_v" }, weights.stream_basis());
        known.add_inner(layer, "attn_output", attention.basis);
        const auto feed_forward = weights.feed_forward();
        file.add_norm(prefix + "ffn_norm.weight", shape.width);
        file.add(prefix + "ffn_gate.weight", feed_forward.gate);
        file.add(prefix + "ffn_up.weight", feed_forward.up);
        file.add(prefix + "ffn_down.weight", feed_forward.down);
        known.add_stream(layer, { "ffn_gate", "ffn_up" }, weights.stream_basis());
        known.add_inner(layer, "ffn_down", feed_forward.basis);
    }
    file.add_norm("output_norm.weight", shape.width);
    file.add("output.weight", weights.head());
    const std::string model = folder + "/model.gguf";
    file.write(model);
    known.write(model, folder + "/model.cascade.gguf", team);
}

} // namespace

int main(int argc, char ** argv) {
    CLI::App program("writes a model whose linear maps read from known subspaces, and its sidecar");
    SubspaceShape shape;
    std::string folder;
    program.add_option("--width", shape.width, "of the residual stream")->capture_default_str();
    program.add_option("-k", shape.k, "directions of each input")->capture_default_str();
    program.add_option("--layers", shape.layers, "")->capture_default_str();
    program.add_option("--noisy-every", shape.noisy_every, "one token of so many is far from them; 0: none is")
        ->capture_default_str();
    program.add_option("-o", folder, "where both files go")->required();
    CLI11_PARSE(program, argc, argv);
    if (shape.width % SubspaceShape::head_size != 0 || shape.k % 32 != 0 || shape.k % shape.heads() != 0 ||
        shape.k > shape.width) {
        fmt::print(stderr, "subspace_model: --width must be a multiple of {}, -k one of 32 and of width / {}\n",
                   SubspaceShape::head_size, SubspaceShape::head_size);
        return 2;
    }
    try {
        write_all(shape, folder);
    } catch (const std::exception & wrong) {
        fmt::print(stderr, "subspace_model: {}\n", wrong.what());
        return 1;
    }
    return 0;
}
