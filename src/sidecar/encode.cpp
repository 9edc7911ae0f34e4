#include "sidecar/keys.h"

#include "ggml-cpp.h"
#include "gguf.h"

#include <cstring>

namespace cascade::sidecar {

namespace {

class Sum { // FNV-1a
  public:
    void add(const void * data, size_t size) {
        for (size_t i = 0; i < size; i++) {
            value = (value ^ static_cast<const unsigned char *>(data)[i]) * 1099511628211U;
        }
    }
    void add(uint64_t number) { add(&number, sizeof(number)); }
    void add(const std::string & text) {
        add(text.size());
        add(text.data(), text.size());
    }
    template <typename Number>
    void add(const std::vector<Number> & numbers) {
        add(numbers.size());
        add(numbers.data(), numbers.size() * sizeof(Number));
    }
    void add(const Tuned & tuned) {
        add(tuned.epsilons);
        for (const key::Figure & figure : key::figures) {
            add(&(tuned.*figure.value), sizeof(float));
        }
    }
    uint64_t get() const { return value; }

  private:
    uint64_t value = 14695981039346656037U;
};

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
    sum.add(sidecar.near);
    sum.add(sidecar.balanced);
    return sum.get();
}

std::vector<std::byte> encode(const Sidecar & sidecar) {
    const gguf_context_ptr file(gguf_init_empty());
    gguf_set_val_u32(file.get(), key::version, format_version);
    gguf_set_val_u64(file.get(), key::checksum, checksum_of(sidecar));
    gguf_set_val_str(file.get(), key::model_sha256, sidecar.model_sha256.c_str());
    gguf_set_arr_data(file.get(), key::fingerprints, GGUF_TYPE_UINT64, sidecar.fingerprints.data(),
                      sidecar.fingerprints.size());
    gguf_set_val_str(file.get(), key::text, sidecar.text.c_str());
    gguf_set_val_str(file.get(), key::date, sidecar.date.c_str());
    gguf_set_val_u32(file.get(), key::context, sidecar.context);
    gguf_set_val_u32(file.get(), key::scored, sidecar.scored);
    set(file.get(), key::near, sidecar.near);
    set(file.get(), key::balanced, sidecar.balanced);
    std::vector<std::byte> bytes(gguf_get_meta_size(file.get()));
    gguf_get_meta_data(file.get(), bytes.data());
    return bytes;
}

} // namespace cascade::sidecar
