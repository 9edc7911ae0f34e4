// Sidecar files out of a fuzzer's bytes: refused with a reason, or read to what would be written again just so.
//
// The first byte says what the others are: a file as it is; or a good file, some of its bytes changed, so that most of
// what comes out has the right shape; or such a one with its checksum made good, so that values get past it.
#include "byte_reader.h"
#include "sidecar/keys.h"
#include "sidecar/sidecar.h"

#include <cstdio>
#include <cstdlib>

namespace {

using namespace cascade::sidecar;
using cascade::fuzz::ByteReader;
using Bytes = std::vector<std::byte>;

void require(bool holds, const char * what) {
    if (!holds) {
        std::fprintf(stderr, "does not hold: %s\n", what);
        std::abort();
    }
}

std::vector<float> any_floats(ByteReader & reader, size_t count) {
    std::vector<float> values(count);
    for (float & value : values) {
        value = reader.below(4) == 0 ? reader.any_float() : static_cast<float>(reader.byte()) / 255.0F;
    }
    return values;
}

Tuned any_tuned(ByteReader & reader, size_t layers) {
    Tuned tuned;
    tuned.epsilons = any_floats(reader, reader.below(8) == 0 ? reader.byte() : layers);
    for (const key::Figure & figure : key::figures) {
        tuned.*figure.value = any_floats(reader, 1).front();
    }
    return tuned;
}

std::string any_text(ByteReader & reader, size_t length) {
    std::string text(length, 'a');
    for (char & c : text) {
        c = static_cast<char>(reader.below(64) == 0 ? reader.byte() : 'a' + reader.below(6));
    }
    return text;
}

// Its checksum is right, whatever else isn't.
Sidecar any_sidecar(ByteReader & reader) {
    Sidecar sidecar;
    sidecar.fingerprints.resize(static_cast<size_t>(reader.below(40)));
    for (uint64_t & fingerprint : sidecar.fingerprints) {
        fingerprint = reader.byte();
    }
    sidecar.model_sha256 = any_text(reader, reader.below(8) == 0 ? reader.byte() : 64);
    sidecar.text = any_text(reader, reader.byte());
    sidecar.date = any_text(reader, 10);
    sidecar.context = reader.byte();
    sidecar.near = any_tuned(reader, sidecar.fingerprints.size());
    sidecar.balanced = any_tuned(reader, sidecar.fingerprints.size());
    return sidecar;
}

void change(Bytes & bytes, ByteReader & reader) {
    for (int64_t changes = reader.below(8); changes > 0; changes--) {
        bytes[static_cast<size_t>(reader.below(static_cast<int64_t>(bytes.size())))] = std::byte{ reader.byte() };
    }
    if (reader.below(8) == 0) {
        bytes.resize(static_cast<size_t>(reader.below(static_cast<int64_t>(bytes.size()) + 64)));
    }
}

void check(const Bytes & bytes) {
    const Loaded loaded = decode(bytes);
    require(loaded.sidecar.has_value() == loaded.complaint.empty(), "a sidecar or a complaint");
    if (!loaded.sidecar) {
        return;
    }
    const Sidecar & sidecar = *loaded.sidecar;
    for (const Tuned * tuned : { &sidecar.near, &sidecar.balanced }) {
        require(tuned->epsilons.empty() || tuned->epsilons.size() == sidecar.fingerprints.size(), "one for each layer");
        for (const float epsilon : tuned->epsilons) {
            require(epsilon >= 0.0F && epsilon <= 1.0F, "epsilons are from 0 to 1");
        }
    }
    const Loaded again = decode(encode(sidecar));
    require(again.sidecar == loaded.sidecar, "what was read is written and read again");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t * data, size_t size) {
    ByteReader reader({ data, size });
    if (size == 0) {
        check({});
        return 0;
    }
    if (reader.below(4) == 0) {
        const auto * file = reinterpret_cast<const std::byte *>(data + 1);
        check(Bytes(file, file + size - 1));
        return 0;
    }
    Bytes bytes = encode(any_sidecar(reader));
    check(bytes);
    change(bytes, reader);
    check(bytes);
    return 0;
}
