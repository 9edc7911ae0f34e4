// Sidecars come back as they were written, and files that are none are refused, whatever they claim.
#include "sidecar/gguf_walk.h"
#include "sidecar/keys.h"
#include "sidecar/samples.h"

#include "ggml-cpp.h"
#include "gguf.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <sys/stat.h>
#include <unistd.h>

namespace cascade::sidecar {
namespace {

using test::Bytes;
using test::HandMade;
using test::sample;

void expect_refused(const Bytes & bytes, const std::string & what) {
    const Loaded loaded = decode(bytes);
    EXPECT_FALSE(loaded.sidecar) << what;
    EXPECT_FALSE(loaded.complaint.empty()) << what;
}

// The sample with something changed by the engine's own writer.
Bytes rewritten(const std::function<void(gguf_context *)> & change) {
    const Bytes bytes = encode(sample());
    const gguf_context_ptr file(gguf_init_from_buffer(bytes.data(), bytes.size(), { true, nullptr }));
    change(file.get());
    Bytes changed(gguf_get_meta_size(file.get()));
    gguf_get_meta_data(file.get(), changed.data());
    return changed;
}

// The sample with other values, its checksum made of them: only the check of the values can refuse it.
Bytes encoded_with(const std::function<void(Sidecar &)> & change) {
    Sidecar sidecar = sample();
    change(sidecar);
    return encode(sidecar);
}

TEST(Sidecar, ComesBackAsItWasWritten) {
    const Loaded loaded = decode(encode(sample()));
    ASSERT_TRUE(loaded.sidecar) << loaded.complaint;
    EXPECT_EQ(*loaded.sidecar, sample());
    EXPECT_TRUE(loaded.complaint.empty());
}

TEST(Sidecar, AModeMayBeMissing) {
    Sidecar one = sample();
    one.balanced = {};
    const Loaded loaded = decode(encode(one));
    ASSERT_TRUE(loaded.sidecar) << loaded.complaint;
    EXPECT_EQ(*loaded.sidecar, one);
}

TEST(Sidecar, CutShortAnywhereIsRefused) {
    const Bytes whole = encode(sample());
    for (size_t size = 0; size < whole.size(); size++) {
        expect_refused(Bytes(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size)), std::to_string(size));
    }
}

TEST(Sidecar, WithMoreBytesBehindIsRefused) {
    for (const size_t more : { 1, 31, 32, 4096 }) {
        Bytes longer = encode(sample());
        longer.resize(longer.size() + more);
        expect_refused(longer, std::to_string(more));
    }
}

TEST(Sidecar, AnyByteChangedIsRefused) {
    const Bytes whole = encode(sample());
    for (size_t at = 0; at < whole.size(); at++) {
        for (const unsigned flip : { 0x01U, 0x80U, 0xffU }) {
            Bytes changed = whole;
            changed[at] ^= static_cast<std::byte>(flip);
            expect_refused(changed, "byte " + std::to_string(at));
        }
    }
}

TEST(Sidecar, ValuesThatNoSidecarHasAreRefused) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float infinite = std::numeric_limits<float>::infinity();
    for (const float bad : { -0.01F, 1.01F, nan, infinite, -infinite }) {
        expect_refused(encoded_with([&](Sidecar & s) { s.near.epsilons[1] = bad; }), "epsilon " + std::to_string(bad));
        expect_refused(encoded_with([&](Sidecar & s) { s.balanced.epsilons[3] = bad; }), "the other mode's");
    }
    for (const float bad : { -1.0F, nan, infinite }) {
        expect_refused(encoded_with([&](Sidecar & s) { s.near.kl = bad; }), "KL " + std::to_string(bad));
    }
    expect_refused(encoded_with([](Sidecar & s) { s.near.epsilons.pop_back(); }), "an epsilon too few");
    expect_refused(encoded_with([](Sidecar & s) { s.near.epsilons.push_back(0.1F); }), "an epsilon too many");
    expect_refused(encoded_with([](Sidecar & s) { s.fingerprints = { 1 }; }), "fingerprints too few");
    expect_refused(encoded_with([](Sidecar & s) { s.fingerprints.clear(); }), "no layers");
    expect_refused(encoded_with([](Sidecar & s) { s.fingerprints.assign(most_layers + 1, 1); }), "too many layers");
    expect_refused(encoded_with([](Sidecar & s) { s.model_sha256 = "abc"; }), "a short digest");
    expect_refused(encoded_with([](Sidecar & s) { s.model_sha256[3] = 'X'; }), "a digest of other letters");
    expect_refused(encoded_with([](Sidecar & s) { s.text = "a\033[2Jb"; }), "a name that speaks to the terminal");
    expect_refused(encoded_with([](Sidecar & s) { s.text.assign(longest_string + 1, 'x'); }), "a name too long");
}

TEST(Sidecar, OtherVersionsAndTypesAreRefused) {
    const Loaded later = decode(rewritten([](gguf_context * f) { gguf_set_val_u32(f, key::version, 2); }));
    EXPECT_FALSE(later.sidecar);
    EXPECT_NE(later.complaint.find("version"), std::string::npos) << later.complaint;
    const float floats[] = { 0.1F, 0.2F, 0.3F, 0.4F };
    const double doubles[] = { 0.1, 0.2, 0.3, 0.4 };
    const std::string near_epsilons = std::string(key::near) + key::epsilons;
    expect_refused(rewritten([](gguf_context * f) { gguf_set_val_u64(f, key::version, 1); }), "version as u64");
    expect_refused(rewritten([](gguf_context * f) { gguf_set_val_str(f, key::version, "1"); }), "version as text");
    expect_refused(rewritten([](gguf_context * f) { gguf_set_val_u32(f, key::checksum, 1); }), "checksum as u32");
    expect_refused(rewritten([](gguf_context * f) { gguf_set_val_u32(f, key::model_sha256, 1); }), "digest as number");
    expect_refused(rewritten([](gguf_context * f) { gguf_set_val_f32(f, key::context, 1); }), "context as float");
    expect_refused(rewritten([&](gguf_context * f) {
                       gguf_set_arr_data(f, near_epsilons.c_str(), GGUF_TYPE_FLOAT64, doubles, 4);
                   }),
                   "epsilons as doubles");
    expect_refused(rewritten([&](gguf_context * f) { gguf_set_val_f32(f, near_epsilons.c_str(), 0.1F); }),
                   "an epsilon alone");
    expect_refused(
        rewritten([&](gguf_context * f) { gguf_set_arr_data(f, key::fingerprints, GGUF_TYPE_FLOAT32, floats, 4); }),
        "fingerprints as floats");
    for (const char * name : { key::version, key::checksum, key::model_sha256, key::fingerprints, key::text, key::date,
                               key::context, key::scored, "cascade.sidecar.near.kl" }) {
        expect_refused(rewritten([&](gguf_context * f) { gguf_remove_key(f, name); }), std::string("without ") + name);
    }
}

TEST(Sidecar, HostileFilesAreRefused) {
    constexpr uint64_t huge = ~uint64_t{ 0 };
    constexpr uint32_t array = GGUF_TYPE_ARRAY;
    constexpr uint32_t u64 = GGUF_TYPE_UINT64;
    const Bytes empty = HandMade(0).as_is();
    const std::vector<std::pair<const char *, Bytes>> files = {
        { "nothing", {} },
        { "the magic alone", Bytes(empty.begin(), empty.begin() + 4) },
        { "no values", HandMade(0).padded() },
        { "more values than there are", HandMade(3).key("a", GGUF_TYPE_UINT8).number<uint8_t>(1).padded() },
        { "as many values as numbers go", HandMade(huge).padded() },
        { "half as many", HandMade(huge / 2).padded() },
        { "as many tensors", HandMade(0, 3, huge).padded() },
        { "a tensor", HandMade(0, 3, 1).padded() },
        { "GGUF version 0", HandMade(0, 0).padded() },
        { "GGUF version 1", HandMade(0, 1).padded() },
        { "GGUF version 4", HandMade(0, 4).padded() },
        { "the other byte order", HandMade(0, 0x03000000).padded() },
        { "an empty key", HandMade(1).key("", GGUF_TYPE_UINT8).number<uint8_t>(1).padded() },
        { "a key as long as numbers go", HandMade(1).number(huge).padded() },
        { "a key that ends beyond the file", HandMade(1).number<uint64_t>(900).raw("abc", 3).padded() },
        { "a key twice", HandMade(2)
                             .key("a", GGUF_TYPE_UINT8)
                             .number<uint8_t>(1)
                             .key("a", GGUF_TYPE_UINT8)
                             .number<uint8_t>(1)
                             .padded() },
        { "an unknown type", HandMade(1).key("a", 13).number(huge).padded() },
        { "a negative type", HandMade(1).key("a", 0xffffffff).number(huge).padded() },
        { "text as long as numbers go", HandMade(1).key("a", GGUF_TYPE_STRING).number(huge).padded() },
        { "text that ends beyond the file", HandMade(1).key("a", GGUF_TYPE_STRING).number<uint64_t>(1000).padded() },
        { "an array as long as numbers go", HandMade(1).key("a", array).number(u64).number(huge).padded() },
        { "an array whose size wraps", HandMade(1).key("a", array).number(u64).number(huge / 8 + 2).padded() },
        { "an array of a billion", HandMade(1).key("a", array).number(u64).number<uint64_t>(1U << 30U).padded() },
        { "an array of arrays", HandMade(1).key("a", array).number(array).number<uint64_t>(1).padded() },
        { "an array of texts",
          HandMade(1).key("a", array).number<uint32_t>(GGUF_TYPE_STRING).number<uint64_t>(1).string("b").padded() },
        { "an array of an unknown type",
          HandMade(1).key("a", array).number<uint32_t>(77).number<uint64_t>(1).padded() },
        { "an alignment of its own",
          HandMade(1).key("general.alignment", GGUF_TYPE_UINT32).number(1U << 31U).padded() },
        { "something in the padding", HandMade(1).key("a", GGUF_TYPE_UINT8).number<uint8_t>(1).raw("x", 1).padded() },
        { "another kind of file", HandMade(1).key("general.name", GGUF_TYPE_STRING).string("model").padded() },
    };
    for (const auto & [what, bytes] : files) {
        expect_refused(bytes, what);
    }
}

class OnDisk : public testing::Test {
  protected:
    std::string path = testing::TempDir() + "sidecar_test_" + std::to_string(::getpid());
    void TearDown() override { std::filesystem::remove_all(path); }
};

TEST_F(OnDisk, IsWrittenWholeAndReadAgain) {
    ASSERT_TRUE(save(sample(), path));
    const Loaded loaded = load(path);
    ASSERT_TRUE(loaded.sidecar) << loaded.complaint;
    EXPECT_EQ(*loaded.sidecar, sample());
    EXPECT_FALSE(save(sample(), path + "/no/such/place"));
}

TEST_F(OnDisk, WhatIsNoFileIsRefused) {
    EXPECT_EQ(load(path).complaint, "isn't there");
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    EXPECT_EQ(load(path).complaint, "is no file");
    std::filesystem::remove(path);
    std::filesystem::create_directory(path);
    EXPECT_EQ(load(path).complaint, "is no file");
}

TEST_F(OnDisk, AFileLargerThanAnySidecarIsNotRead) {
    std::ofstream(path) << "GGUF";
    std::filesystem::resize_file(path, (uintmax_t{ 256 } << 30U) + 1); // sparse
    EXPECT_EQ(load(path).complaint, "is larger than any sidecar");
}

} // namespace
} // namespace cascade::sidecar
