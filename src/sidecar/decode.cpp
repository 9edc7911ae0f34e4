#include "sidecar/gguf_walk.h"
#include "sidecar/keys.h"

#include "ggml-cpp.h"
#include "gguf.h"

#include <algorithm>
#include <cmath>

namespace cascade::sidecar {

namespace {

// Values by name and type; the first that isn't there, or is something else, is remembered.
class Values {
  public:
    explicit Values(const gguf_context * of) : file(of) {}

    uint32_t u32(const std::string & name) {
        const int64_t id = find(name, GGUF_TYPE_UINT32);
        return id < 0 ? 0 : gguf_get_val_u32(file, id);
    }
    uint64_t u64(const std::string & name) {
        const int64_t id = find(name, GGUF_TYPE_UINT64);
        return id < 0 ? 0 : gguf_get_val_u64(file, id);
    }
    float f32(const std::string & name) {
        const int64_t id = find(name, GGUF_TYPE_FLOAT32);
        return id < 0 ? 0.0F : gguf_get_val_f32(file, id);
    }
    std::string text(const std::string & name) {
        const int64_t id = find(name, GGUF_TYPE_STRING);
        return id < 0 ? "" : gguf_get_val_str(file, id);
    }
    template <typename Number>
    std::vector<Number> array(const std::string & name, gguf_type type) {
        const int64_t id = find(name, GGUF_TYPE_ARRAY);
        if (id < 0 || gguf_get_arr_type(file, id) != type || gguf_get_arr_n(file, id) > most_layers) {
            miss(name);
            return {};
        }
        const auto * data = static_cast<const Number *>(gguf_get_arr_data(file, id));
        return { data, data + gguf_get_arr_n(file, id) };
    }
    bool has(const std::string & name) const { return gguf_find_key(file, name.c_str()) >= 0; }
    const std::string & missed() const { return first_missed; }

  private:
    int64_t find(const std::string & name, gguf_type type) {
        const int64_t id = gguf_find_key(file, name.c_str());
        if (id >= 0 && gguf_get_kv_type(file, id) == type) {
            return id;
        }
        miss(name);
        return -1;
    }
    void miss(const std::string & name) { first_missed = first_missed.empty() ? name : first_missed; }

    const gguf_context * file;
    std::string first_missed;
};

Tuned tuned_in(Values & values, const std::string & mode) {
    Tuned tuned;
    if (!values.has(mode + key::epsilons)) {
        return tuned;
    }
    tuned.epsilons = values.array<float>(mode + key::epsilons, GGUF_TYPE_FLOAT32);
    for (const key::Figure & figure : key::figures) {
        tuned.*figure.value = values.f32(mode + figure.name);
    }
    return tuned;
}

bool is_share(float value) { return value >= 0.0F && value <= 1.0F; } // false for what is no number

bool is_plain(const std::string & text) {
    return std::none_of(text.begin(), text.end(),
                        [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 127; });
}

bool is_digest(const std::string & text) {
    return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

bool is_sound(const Tuned & tuned, size_t layers) {
    return (tuned.epsilons.empty() || tuned.epsilons.size() == layers) &&
           std::all_of(tuned.epsilons.begin(), tuned.epsilons.end(), is_share) &&
           std::all_of(key::figures.begin(), key::figures.end(), [&](const key::Figure & figure) {
               return std::isfinite(tuned.*figure.value) && tuned.*figure.value >= 0.0F;
           });
}

bool is_sound(const Sidecar & sidecar) {
    const size_t layers = sidecar.fingerprints.size();
    return layers > 0 && is_digest(sidecar.model_sha256) && is_plain(sidecar.text) && is_plain(sidecar.date) &&
           is_sound(sidecar.near, layers) && is_sound(sidecar.balanced, layers);
}

} // namespace

Loaded decode(std::span<const std::byte> bytes) {
    if (const char * objection = objection_to(bytes)) {
        return { {}, objection };
    }
    const gguf_context_ptr file(gguf_init_from_buffer(bytes.data(), bytes.size(), { true, nullptr }));
    if (!file) {
        return { {}, "can't be read as GGUF" };
    }
    Values values(file.get());
    if (!values.has(key::version)) {
        return { {}, "is a GGUF file, but no sidecar" };
    }
    if (values.u32(key::version) != format_version) {
        return { {}, "is of another format version: make it anew with 'cascade tune'" };
    }
    Sidecar sidecar;
    sidecar.model_sha256 = values.text(key::model_sha256);
    sidecar.fingerprints = values.array<uint64_t>(key::fingerprints, GGUF_TYPE_UINT64);
    sidecar.text = values.text(key::text);
    sidecar.date = values.text(key::date);
    sidecar.context = values.u32(key::context);
    sidecar.scored = values.u32(key::scored);
    sidecar.near = tuned_in(values, key::near);
    sidecar.balanced = tuned_in(values, key::balanced);
    const uint64_t checksum = values.u64(key::checksum);
    if (!values.missed().empty()) {
        return { {}, "lacks " + values.missed() + ", or has it as something else" };
    }
    if (!is_sound(sidecar)) {
        return { {}, "has values that no sidecar can have" };
    }
    if (checksum != checksum_of(sidecar)) {
        return { {}, "is damaged: its checksum is another one" };
    }
    return { std::move(sidecar), {} };
}

} // namespace cascade::sidecar
