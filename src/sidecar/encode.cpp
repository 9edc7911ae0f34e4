#include "sidecar/encode.h"
#include "sidecar/keys.h"
#include "sidecar/sum.h"

#include "ggml-cpp.h"
#include "gguf.h"

namespace cascade::sidecar {

namespace {

void add(Sum & sum, const Tuned & tuned) {
    sum.add(tuned.epsilons);
    for (const key::Figure & figure : key::figures) {
        sum.add(&(tuned.*figure.value), sizeof(float));
    }
}

void set(gguf_context * file, const std::string & mode, const Tuned & tuned) {
    if (tuned.epsilons.empty()) {
        return;
    }
    gguf_set_arr_data(file, (mode + key::epsilons).c_str(), GGUF_TYPE_FLOAT32, tuned.epsilons.data(),
                      tuned.epsilons.size());
    for (const key::Figure & figure : key::figures) {
        gguf_set_val_f32(file, (mode + figure.name).c_str(), tuned.*figure.value);
    }
}

} // namespace

uint64_t checksum_of(const Sidecar & sidecar) {
    Sum sum;
    sum.add(sidecar.model_sha256);
    sum.add(sidecar.fingerprints);
    sum.add(sidecar.text);
    sum.add(sidecar.date);
    sum.add(sidecar.context);
    sum.add(sidecar.scored);
    add(sum, sidecar.near);
    add(sum, sidecar.balanced);
    return sum.get();
}

uint64_t checksum_of(const SubspaceValues & values, const std::vector<GgufTensor> & tensors,
                     const std::string & model_sha256) {
    Sum sum;
    sum.add(model_sha256);
    sum.add(values.calibration.text);
    sum.add(values.calibration.date);
    sum.add(values.calibration.context);
    sum.add(values.calibration.tokens);
    sum.add(values.curve_counts);
    sum.add(values.curve_energies);
    sum.add(values.residual_energies);
    sum.add(values.held_out);
    sum.add(values.gains);
    sum.add(values.rough_errors);
    sum.add(values.data_checksum);
    for (const GgufTensor & tensor : tensors) {
        sum.add(std::string(tensor.name));
        sum.add(tensor.type);
        sum.add(tensor.columns);
        sum.add(tensor.rows);
    }
    return sum.get();
}

void set_sidecar(gguf_context * file, const Sidecar & sidecar) {
    gguf_set_val_u32(file, key::version, format_version);
    gguf_set_val_u64(file, key::checksum, checksum_of(sidecar));
    gguf_set_val_str(file, key::model_sha256, sidecar.model_sha256.c_str());
    gguf_set_arr_data(file, key::fingerprints, GGUF_TYPE_UINT64, sidecar.fingerprints.data(),
                      sidecar.fingerprints.size());
    gguf_set_val_str(file, key::text, sidecar.text.c_str());
    gguf_set_val_str(file, key::date, sidecar.date.c_str());
    gguf_set_val_u32(file, key::context, sidecar.context);
    gguf_set_val_u32(file, key::scored, sidecar.scored);
    set(file, key::near, sidecar.near);
    set(file, key::balanced, sidecar.balanced);
}

std::vector<std::byte> encode(const Sidecar & sidecar) {
    const gguf_context_ptr file(gguf_init_empty());
    set_sidecar(file.get(), sidecar);
    std::vector<std::byte> bytes(gguf_get_meta_size(file.get()));
    gguf_get_meta_data(file.get(), bytes.data());
    return bytes;
}

} // namespace cascade::sidecar
