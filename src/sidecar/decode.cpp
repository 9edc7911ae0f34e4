#include "sidecar/decode.h"

#include "sidecar/keys.h"

#include <algorithm>
#include <cmath>

namespace cascade::sidecar {

namespace {

Tuned tuned_in(Values & values, const std::string & mode) {
    Tuned tuned;
    if (!values.has(mode + key::epsilons)) {
        return tuned;
    }
    tuned.epsilons = values.array<float>(mode + key::epsilons, GGUF_TYPE_FLOAT32, most_layers);
    for (const key::Figure & figure : key::figures) {
        tuned.*figure.value = values.f32(mode + figure.name);
    }
    return tuned;
}

bool is_share(float value) { return value >= 0.0F && value <= 1.0F; } // false for what is no number

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

bool is_plain(std::string_view text) {
    return std::none_of(text.begin(), text.end(),
                        [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 127; });
}

Loaded decode_sidecar(Values & values) {
    if (!values.has(key::version)) {
        return { {}, "is a GGUF file, but no sidecar" };
    }
    if (values.u32(key::version) != format_version) {
        return { {}, "is of another format version: make it anew with 'cascade tune' or 'cascade calibrate'" };
    }
    Sidecar sidecar;
    sidecar.model_sha256 = values.text(key::model_sha256);
    sidecar.fingerprints = values.array<uint64_t>(key::fingerprints, GGUF_TYPE_UINT64, most_layers);
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

Head decode_head(const Gguf & file) {
    Head head;
    if (file.objection != nullptr) {
        head.complaint = file.objection;
        return head;
    }
    Values values(file);
    Loaded loaded = decode_sidecar(values);
    head.sidecar = std::move(loaded.sidecar);
    head.complaint = std::move(loaded.complaint);
    if (head.sidecar) {
        head.complaint = decode_subspaces(file, values, *head.sidecar, head);
    }
    if (!head.complaint.empty()) {
        head.sidecar.reset();
    }
    return head;
}

Loaded decode(std::span<const std::byte> bytes) {
    Head head = decode_head(walk(bytes, bytes.size()));
    return { std::move(head.sidecar), std::move(head.complaint) };
}

} // namespace cascade::sidecar
