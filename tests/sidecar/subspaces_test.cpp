// Subspaces come back as they were written, and files whose tensors are not what they claim are refused.
#include "sidecar/keys.h"
#include "sidecar/made_subspaces.h"

#include "ggml-cpp.h"
#include "gguf.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <unistd.h>

namespace cascade::sidecar {
namespace {

using test::Bytes;
using test::HandMade;
using test::MadeSubspaces;

void expect_refused(const Bytes & bytes, const std::string & what, const std::string & complaint = "") {
    const Opened opened = read_subspaces(bytes);
    EXPECT_FALSE(opened.file) << what;
    EXPECT_FALSE(opened.complaint.empty()) << what;
    EXPECT_NE(opened.complaint.find(complaint), std::string::npos) << what << ": " << opened.complaint;
}

void expect_same(const TensorView & a, const TensorView & b) {
    EXPECT_EQ(a.type, b.type);
    EXPECT_EQ(a.columns, b.columns);
    EXPECT_EQ(a.rows, b.rows);
    ASSERT_EQ(a.size, b.size);
    EXPECT_TRUE(std::equal(a.data, a.data + a.size, b.data));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(a.data) % 32, 0U);
}

void expect_same(const SubspaceFile & file, const MadeSubspaces & made) {
    EXPECT_EQ(file.sidecar(), made.binding);
    EXPECT_EQ(file.calibration(), made.calibration);
    ASSERT_EQ(file.subspaces().size(), made.subspaces.size());
    for (size_t i = 0; i < made.subspaces.size(); i++) {
        const Subspace & read = file.subspaces()[i];
        const Subspace & wanted = made.subspaces[i];
        EXPECT_EQ(read.input, wanted.input);
        EXPECT_EQ(read.layer, wanted.layer);
        EXPECT_EQ(read.width, wanted.width);
        EXPECT_EQ(read.k, wanted.k);
        EXPECT_EQ(read.figures, wanted.figures);
        ASSERT_EQ(read.images.size(), wanted.images.size());
        for (size_t j = 0; j < wanted.images.size(); j++) {
            EXPECT_EQ(read.images[j].weight, wanted.images[j].weight);
        }
        ASSERT_EQ(read.tensors().size(), wanted.tensors().size());
        for (size_t j = 0; j < wanted.tensors().size(); j++) {
            expect_same(*read.tensors()[j], *wanted.tensors()[j]);
        }
    }
}

// Where a tensor's description goes on behind its name: dimensions, sides, type, offset.
size_t behind_name(const Bytes & bytes, const std::string & name) {
    const auto * letters = reinterpret_cast<const std::byte *>(name.data());
    const auto found = std::search(bytes.begin(), bytes.end(), letters, letters + name.size());
    EXPECT_NE(found, bytes.end()) << name;
    return static_cast<size_t>(found - bytes.begin()) + name.size();
}

constexpr size_t to_dimensions = 0; // from behind the name of a tensor with two
constexpr size_t to_columns = 4;
constexpr size_t to_rows = 12;
constexpr size_t to_type = 20;
constexpr size_t to_offset = 24;

template <typename Number>
Bytes with(const std::string & tensor, size_t field, Number value) {
    Bytes bytes = MadeSubspaces().encoded();
    std::memcpy(bytes.data() + behind_name(bytes, tensor) + field, &value, sizeof(value));
    return bytes;
}

Bytes renamed(const std::string & from, const std::string & to) { // of one length
    Bytes bytes = MadeSubspaces().encoded();
    std::memcpy(bytes.data() + behind_name(bytes, from) - from.size(), to.data(), to.size());
    return bytes;
}

Bytes made_with(const std::function<void(MadeSubspaces &)> & change) {
    MadeSubspaces made;
    change(made);
    return made.encoded();
}

TEST(Subspaces, ComeBackAsTheyWereWritten) {
    const MadeSubspaces made;
    const Opened opened = read_subspaces(made.encoded());
    ASSERT_TRUE(opened.file) << opened.complaint;
    EXPECT_TRUE(opened.complaint.empty());
    expect_same(*opened.file, made);
}

TEST(Subspaces, AreNoTuningsConcern) {
    const MadeSubspaces made;
    const Loaded loaded = decode(made.encoded());
    ASSERT_TRUE(loaded.sidecar) << loaded.complaint;
    EXPECT_EQ(*loaded.sidecar, made.binding);
    const Opened without = read_subspaces(encode(made.binding));
    ASSERT_TRUE(without.file) << without.complaint;
    EXPECT_TRUE(without.file->subspaces().empty());
}

TEST(Subspaces, CanBeReadByTheEngineToo) {
    const Bytes bytes = MadeSubspaces().encoded();
    const gguf_context_ptr file(gguf_init_from_buffer(bytes.data(), bytes.size(), { true, nullptr }));
    ASSERT_TRUE(file);
    EXPECT_EQ(gguf_get_n_tensors(file.get()), 13);
    EXPECT_GE(gguf_find_tensor(file.get(), "blk.0.attn_k.image"), 0);
}

TEST(Subspaces, CutShortAnywhereAreRefused) {
    const Bytes whole = MadeSubspaces().encoded();
    for (size_t size = 0; size < whole.size(); size++) {
        expect_refused(Bytes(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size)), std::to_string(size));
    }
    for (const size_t more : { 1, 31, 32, 4096 }) {
        Bytes longer = whole;
        longer.resize(longer.size() + more);
        expect_refused(longer, std::to_string(more) + " more");
    }
}

TEST(Subspaces, AnyByteChangedIsRefused) {
    const Bytes whole = MadeSubspaces().encoded();
    for (size_t at = 0; at < whole.size(); at++) {
        for (const unsigned flip : { 0x01U, 0x80U, 0xffU }) {
            Bytes changed = whole;
            changed[at] ^= static_cast<std::byte>(flip);
            expect_refused(changed, "byte " + std::to_string(at));
        }
    }
}

TEST(Subspaces, HostileTensorsAreRefused) {
    constexpr uint64_t huge = ~uint64_t{ 0 };
    const std::string basis = "blk.0.attn_q.basis";
    const std::string image = "blk.0.attn_q.image";
    const char * shape = "shape";
    const char * place = "out of its place";
    const std::vector<std::tuple<const char *, Bytes, const char *>> files = {
        { "no dimensions", with<uint32_t>(basis, to_dimensions, 0), "damaged" },
        { "three dimensions", with<uint32_t>(basis, to_dimensions, 3), "more than two" },
        { "four dimensions", with<uint32_t>(basis, to_dimensions, 4), "more than two" },
        { "as many dimensions as numbers go", with<uint32_t>(basis, to_dimensions, 0xffffffff), "more than two" },
        { "one dimension where two follow", with<uint32_t>(basis, to_dimensions, 1), "" },
        { "no columns", with<uint64_t>(basis, to_columns, 0), shape },
        { "no rows", with<uint64_t>(basis, to_rows, 0), shape },
        { "as many columns as numbers go", with(basis, to_columns, huge), shape },
        { "as many rows", with(basis, to_rows, huge), shape },
        { "negative columns", with<int64_t>(basis, to_columns, -40), shape },
        { "sides whose product wraps to what is there", with<uint64_t>(basis, to_rows, (uint64_t{ 1 } << 60U) + 32),
          shape },
        { "the longest sides there may be", with<uint64_t>(image, to_rows, uint64_t{ 1 } << 24U), "beyond the file" },
        { "a side longer than any", with<uint64_t>(image, to_rows, (uint64_t{ 1 } << 24U) + 1), shape },
        { "a row too many", with<uint64_t>(image, to_rows, 7), "" },
        { "a row too few", with<uint64_t>(image, to_rows, 5), "" },
        { "half a block of columns", with<uint64_t>(image, to_columns, 16), shape },
        { "more basis vectors than coordinates", with<uint64_t>(basis, to_columns, 31), "" },
        { "type q4_1", with<uint32_t>(image, to_type, GGML_TYPE_Q4_1), "of a type" },
        { "type i8", with<uint32_t>(image, to_type, GGML_TYPE_I8), "of a type" },
        { "type f64", with<uint32_t>(image, to_type, GGML_TYPE_F64), "of a type" },
        { "a type that was removed", with<uint32_t>(image, to_type, 4), "of a type" },
        { "a type of no engine", with<uint32_t>(image, to_type, 1000), "of a type" },
        { "a negative type", with<uint32_t>(image, to_type, 0xffffffff), "of a type" },
        { "a quantised basis", with<uint32_t>(basis, to_type, GGML_TYPE_Q8_0), "" },
        { "a basis as f32 where f16 is", with<uint32_t>(basis, to_type, GGML_TYPE_F32), "" },
        { "an image as f32 where q8_0 is", with<uint32_t>(image, to_type, GGML_TYPE_F32), place },
        { "a tensor over the one before", with<uint64_t>(image, to_offset, 0), place },
        { "a tensor that begins within another", with<uint64_t>(image, to_offset, 32), place },
        { "a tensor out of line", with<uint64_t>(image, to_offset, 2561), place },
        { "a gap before a tensor", with<uint64_t>(image, to_offset, 2592), place },
        { "a tensor beyond the file", with<uint64_t>(image, to_offset, uint64_t{ 1 } << 40U), place },
        { "an offset as large as numbers go", with(image, to_offset, huge), place },
        { "an offset that wraps", with(image, to_offset, huge - 31), place },
        { "the first tensor not at the beginning", with<uint64_t>(basis, to_offset, 32), place },
        { "a tensor twice", renamed("blk.0.attn_k.image", "blk.0.attn_q.image"), "twice" },
        { "a tensor of no kind", renamed("blk.0.attn_k.image", "blk.0.attn_k.imago"), "that no sidecar has" },
        { "nothing but a suffix", renamed("blk.0.attn_k.image", "xxxxxxxxxxxxxxxxxx"), "that no sidecar has" },
        { "a letter that a terminal obeys", renamed("blk.0.attn_k.image", "blk.0.att\x1bk.image"),
          "that no sidecar has" },
        { "an image of another layer", renamed("blk.0.attn_k.image", "blk.1.attn_k.image"), "another input" },
        { "an image of no layer", renamed("blk.0.attn_k.image", "blk.x.attn_k.image"), "another input" },
        { "a first image that isn't the namesake", renamed("blk.0.attn_q.basis", "blk.0.attn_x.basis"),
          "another input" },
        { "a basis of a layer that isn't there", renamed("blk.0.attn_q.basis", "blk.9.attn_q.basis"), "no layer" },
        { "a basis of no layer", renamed("blk.0.attn_q.basis", "blk_0.attn_q.basis"), "no layer" },
        { "a layer with a sign", renamed("blk.0.attn_q.basis", "blk.-0attn.q.basis"), "no layer" },
        { "a layer with a zero before", renamed("blk.0.attn_q.basis", "blk.00.ttn_q.basis"), "no layer" },
        { "a layer as large as numbers go", renamed("blk.0.attn_q.basis", "blk.99999999.basis"), "no layer" },
        { "an image before all bases", renamed("blk.0.attn_q.basis", "blk.0.attn_x.image"), "without a basis" },
        { "a basis behind a basis", renamed("blk.0.attn_q.image", "blk.0.attn_k.basis"), "" },
        { "a basis at the end", renamed("blk.3.ffn_down.image", "blk.2.ffn_down.basis"), "" },
    };
    for (const auto & [what, bytes, complaint] : files) {
        expect_refused(bytes, what, complaint);
        EXPECT_FALSE(decode(bytes).sidecar && read_subspaces(bytes).file) << what;
    }
}

TEST(Subspaces, HostileHeadsAreRefused) {
    constexpr uint64_t huge = ~uint64_t{ 0 };
    const auto tensor = [](const std::string & name, uint32_t type) {
        return HandMade(0, 3, 1).string(name).number<uint32_t>(1).number<uint64_t>(8).number(type).number<uint64_t>(0);
    };
    const std::vector<std::pair<const char *, Bytes>> files = {
        { "a tensor that isn't there", HandMade(0, 3, 1).padded() },
        { "as many tensors as numbers go", HandMade(0, 3, huge).padded() },
        { "more tensors than any sidecar has", HandMade(0, 3, most_tensors + 1).padded() },
        { "as many as may be, none there", HandMade(0, 3, most_tensors).padded() },
        { "a name as long as numbers go", HandMade(0, 3, 1).number(huge).padded() },
        { "a name longer than the engine's", tensor(std::string(64, 'a'), GGML_TYPE_F32).padded() },
        { "an empty name", tensor("", GGML_TYPE_F32).padded() },
        { "a tensor without its bytes", tensor("a.basis", GGML_TYPE_F32).padded() },
        { "a tensor cut in its description",
          HandMade(0, 3, 1).string("a.basis").number<uint32_t>(2).number<uint64_t>(8).as_is() },
        { "a tensor in a file of no values",
          tensor("a.basis", GGML_TYPE_F32).raw(std::string(23 + 32, '\0').data(), 23 + 32).padded() },
    };
    for (const auto & [what, bytes] : files) {
        expect_refused(bytes, what);
        EXPECT_FALSE(decode(bytes).sidecar) << what;
    }
}

TEST(Subspaces, ValuesThatNoneHaveAreRefused) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const char * none = "no sidecar can have";
    const auto figures = [&](const char * what, const std::function<void(SubspaceFigures &)> & change) {
        expect_refused(made_with([&](MadeSubspaces & made) { change(made.subspaces[0].figures); }), what, none);
    };
    for (const float bad : { -0.1F, 1.1F, nan, std::numeric_limits<float>::infinity() }) {
        figures("residual", [&](SubspaceFigures & f) { f.residual_energy = bad; });
        figures("held out", [&](SubspaceFigures & f) { f.held_out[8] = bad; });
        expect_refused(made_with([&](MadeSubspaces & made) { made.subspaces[2].figures.rough_error = bad; }),
                       "rough error", none);
        figures("energy", [&](SubspaceFigures & f) { f.curve[1].energy = bad; });
    }
    for (const float bad : { -0.1F, 0.0F, 1e7F, nan }) {
        figures("gain", [&](SubspaceFigures & f) { f.gain = bad; });
    }
    figures("quantiles that fall", [](SubspaceFigures & f) { f.held_out[3] = 0.15F; });
    figures("a curve that falls", [](SubspaceFigures & f) { f.curve[1].energy = 0.4F; });
    figures("a curve that goes back", [](SubspaceFigures & f) { f.curve[1].k = 8; });
    figures("a curve beyond the width", [](SubspaceFigures & f) { f.curve[2].k = 41; });
    figures("a point behind the last", [](SubspaceFigures & f) { f.curve[5] = { 35, 0.95F }; });
    figures("an energy without a k", [](SubspaceFigures & f) { f.curve[4].energy = 0.95F; });
    expect_refused(made_with([](MadeSubspaces & made) { made.calibration.text = "a\nb"; }), "text", none);
    expect_refused(made_with([](MadeSubspaces & made) { made.calibration.date = "\x1b[2J"; }), "date", none);
}

TEST(Subspaces, NumbersThatNoneHaveAreRefused) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    constexpr uint16_t half_nan = 0x7e00;
    constexpr uint16_t half_infinite = 0xfc00;
    const char * none = "no sidecar can have";
    const auto numbers = [&](const char * what, const std::function<void(MadeSubspaces &)> & change) {
        expect_refused(made_with(change), what, none);
    };
    numbers("f16 basis, not a number", [](MadeSubspaces & made) { made.half(0, 77) = half_nan; });
    numbers("f16 basis, infinite", [](MadeSubspaces & made) { made.half(0, 0) = half_infinite; });
    numbers("q8_0 image, scale", [](MadeSubspaces & made) { made.half(1, 17) = half_infinite; });
    numbers("q4_0 image, scale", [](MadeSubspaces & made) { made.half(2, 9) = half_nan; });
    numbers("f16 image", [](MadeSubspaces & made) { made.half(3, 31) = half_nan; });
    numbers("f32 basis, not a number", [&](MadeSubspaces & made) { made.number(4, 9) = nan; });
    numbers("f32 basis, infinite",
            [](MadeSubspaces & made) { made.number(4, 0) = std::numeric_limits<float>::infinity(); });
    numbers("f32 image", [&](MadeSubspaces & made) { made.number(5, 5) = nan; });
    numbers("q2_K rough copy, scale", [](MadeSubspaces & made) { made.half(8, 40) = half_nan; });
    numbers("q2_K rough copy, least value", [](MadeSubspaces & made) { made.half(8, 41) = half_infinite; });
    numbers("q3_K rough copy, scale", [](MadeSubspaces & made) { made.half(11, 54) = half_nan; });
    numbers("f32 rest", [&](MadeSubspaces & made) { made.number(9, 0) = nan; });
    numbers("a basis vector too long", [](MadeSubspaces & made) { made.number(4, 0) = 1.0F; });
    numbers("a basis vector of nothing", [](MadeSubspaces & made) {
        for (size_t i = 0; i < 5; i++) {
            made.number(4, i) = 0.0F;
        }
    });
}

TEST(Subspaces, RoughCopiesOutOfTheirPlaceAreRefused) {
    const std::string rough = "blk.2.ffn_up.rough";
    const std::string rest = "blk.2.ffn_up.rest";
    const std::vector<std::tuple<const char *, Bytes, const char *>> files = {
        { "of another map", renamed(rough, "blk.2.ffn_xx.rough"), "without an image" },
        { "a rest of another map", renamed(rest, "blk.2.ffn_xx.rest"), "isn't there" },
        { "a rough copy as an image", renamed(rough, "blk.2.ffn_up.image"), "" },
        { "an image as a rough copy", renamed("blk.0.attn_k.image", "blk.0.attn_q.rough"), "rough copy" },
        { "a rough copy of another shape", with<uint64_t>(rough, to_columns, 512), "" },
        { "a rough copy with a row more", with<uint64_t>(rough, to_rows, 4), "" },
        { "a rough copy in halves", with<uint32_t>(rough, to_type, GGML_TYPE_F16), "" },
        { "an image in q2_K", with<uint32_t>("blk.2.ffn_up.image", to_type, GGML_TYPE_Q2_K), "" },
        { "a rough copy of another width", made_with([](MadeSubspaces & made) {
              made.subspaces[1].figures.rough_error = 0.1F;
              made.subspaces[1].images[0].rough = made.subspaces[2].images[0].rough;
              made.subspaces[1].images[0].rest = made.subspaces[1].images[0].tensor;
          }),
          "rough copy" },
    };
    for (const auto & [what, bytes, why] : files) {
        expect_refused(bytes, what, why);
    }
}

TEST(Subspaces, HeldOutTokensWithinABound) {
    SubspaceFigures figures;
    figures.held_out = { 0.1F, 0.1F, 0.2F, 0.2F, 0.3F, 0.3F, 0.4F, 0.5F, 0.9F };
    EXPECT_EQ(held_out_within(figures, 0.05), 0.0);
    EXPECT_EQ(held_out_within(figures, 0.95), 1.0);
    EXPECT_NEAR(held_out_within(figures, 0.35), 5.5 / 8.0, 1e-6);
    EXPECT_NEAR(held_out_within(figures, 0.7), 7.5 / 8.0, 1e-6);
    figures.held_out.fill(1.0F); // none were held out
    EXPECT_EQ(held_out_within(figures, 0.99), 0.0);
}

TEST(Subspaces, OfAnotherVersionOrWithoutTheirValuesAreRefused) {
    const auto rewritten = [](const std::function<void(gguf_context *)> & change) {
        const Bytes bytes = MadeSubspaces().encoded();
        const gguf_context_ptr file(gguf_init_from_buffer(bytes.data(), bytes.size(), { true, nullptr }));
        const size_t head = gguf_get_meta_size(file.get());
        change(file.get());
        Bytes changed(gguf_get_meta_size(file.get()));
        gguf_get_meta_data(file.get(), changed.data());
        changed.insert(changed.end(), bytes.begin() + static_cast<ptrdiff_t>(head), bytes.end());
        return changed;
    };
    ASSERT_TRUE(read_subspaces(rewritten([](gguf_context *) {})).file);
    expect_refused(rewritten([](gguf_context * f) { gguf_set_val_u32(f, key::subspace_version, 3); }), "later",
                   "version");
    expect_refused(rewritten([](gguf_context * f) { gguf_remove_key(f, key::subspace_version); }), "none",
                   "doesn't say");
    expect_refused(rewritten([](gguf_context * f) { gguf_set_val_str(f, key::subspace_version, "1"); }), "as text");
    expect_refused(
        rewritten([](gguf_context * f) { gguf_set_val_str(f, key::model_sha256, std::string(64, 'b').c_str()); }),
        "for another model", "checksum");
    for (const char * name : { key::subspace_checksum, key::data_checksum, key::subspace_text, key::subspace_date,
                               key::subspace_context, key::subspace_tokens, key::curve_counts, key::curve_energies,
                               key::residual_energies, key::held_out, key::gains, key::rough_errors }) {
        expect_refused(rewritten([&](gguf_context * f) { gguf_remove_key(f, name); }), name, name);
        expect_refused(rewritten([&](gguf_context * f) { gguf_set_val_f64(f, name, 1.0); }), name, name);
    }
    const float floats[] = { 0.1F, 0.2F, 0.3F, 0.4F };
    for (const char * name : { key::residual_energies, key::held_out, key::gains, key::rough_errors }) {
        expect_refused(rewritten([&](gguf_context * f) { gguf_set_arr_data(f, name, GGUF_TYPE_FLOAT32, floats, 4); }),
                       name, "no sidecar can have");
    }
}

class SubspacesOnDisk : public testing::Test {
  protected:
    std::string path = testing::TempDir() + "subspaces_test_" + std::to_string(::getpid());
    void TearDown() override { std::filesystem::remove_all(path); }

    static void add_all(SubspaceWriter & writer, const MadeSubspaces & made) {
        for (const Subspace & subspace : made.subspaces) {
            for (const TensorView * tensor : subspace.tensors()) { // in two pieces
                const size_t row = tensor->size / static_cast<size_t>(tensor->rows);
                writer.add({ tensor->data, row });
                if (tensor->size > row) {
                    writer.add({ tensor->data + row, tensor->size - row });
                }
            }
        }
    }
};

TEST_F(SubspacesOnDisk, AreWrittenPieceByPieceAsTheyAreInMemory) {
    const MadeSubspaces made;
    SubspaceWriter writer(path, made.binding, made.calibration, made.subspaces);
    add_all(writer, made);
    EXPECT_FALSE(std::filesystem::exists(path));
    ASSERT_TRUE(writer.finish());
    const Opened opened = open_subspaces(path);
    ASSERT_TRUE(opened.file) << opened.complaint;
    expect_same(*opened.file, made);
    EXPECT_EQ(std::filesystem::file_size(path), made.encoded().size());
    const Loaded loaded = load(path);
    ASSERT_TRUE(loaded.sidecar) << loaded.complaint;
    EXPECT_EQ(*loaded.sidecar, made.binding);
}

TEST_F(SubspacesOnDisk, StayWhereTheSameModelIsTuned) {
    MadeSubspaces made;
    SubspaceWriter writer(path, made.binding, made.calibration, made.subspaces);
    add_all(writer, made);
    ASSERT_TRUE(writer.finish());
    made.binding.near.epsilons[0] = 0.5F;
    ASSERT_TRUE(save_beside_subspaces(made.binding, path));
    const Opened opened = open_subspaces(path);
    ASSERT_TRUE(opened.file) << opened.complaint;
    expect_same(*opened.file, made);
    made.binding.fingerprints[0]++;
    ASSERT_TRUE(save_beside_subspaces(made.binding, path));
    ASSERT_TRUE(open_subspaces(path).file);
    EXPECT_TRUE(open_subspaces(path).file->subspaces().empty()) << "of another model";
}

TEST_F(SubspacesOnDisk, LeaveNothingWhereNotAllIsThere) {
    std::filesystem::create_directory(path);
    const MadeSubspaces made;
    {
        SubspaceWriter writer(path + "/file", made.binding, made.calibration, made.subspaces);
        writer.add({ made.subspaces[0].basis.data, made.subspaces[0].basis.size });
        EXPECT_FALSE(writer.finish());
    }
    EXPECT_TRUE(std::filesystem::is_empty(path));
    SubspaceWriter nowhere(path + "/no/such/place", made.binding, made.calibration, made.subspaces);
    add_all(nowhere, made);
    EXPECT_FALSE(nowhere.finish());
}

TEST_F(SubspacesOnDisk, OfAnyClaimedSizeTakeNoMoreMemoryThanTheFile) {
    EXPECT_EQ(open_subspaces(path).complaint, "isn't there");
    const Bytes bytes = with<uint64_t>("blk.3.ffn_down.image", to_rows, uint64_t{ 1 } << 24U);
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char *>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    EXPECT_EQ(open_subspaces(path).complaint, "has a tensor that ends beyond the file");
    EXPECT_EQ(load(path).complaint, "has a tensor that ends beyond the file");
}

} // namespace
} // namespace cascade::sidecar
