#include "cli/sha256.h"

#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

namespace cascade::cli {
namespace {

std::string digest(const std::string & text, size_t step) {
    Sha256 sum;
    const auto * bytes = reinterpret_cast<const unsigned char *>(text.data());
    for (size_t at = 0; at < text.size(); at += step) {
        sum.add({ bytes + at, std::min(step, text.size() - at) });
    }
    return sum.hex();
}

// The standard's own examples.
TEST(Sha256, OfTheStandardsExamples) {
    EXPECT_EQ(digest("", 1), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(digest("abc", 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(digest(std::string(1000000, 'a'), 4096),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, IsTheSameInParts) {
    for (const size_t length : { 55U, 56U, 63U, 64U, 65U, 119U, 128U, 1000U }) {
        const std::string text(length, 'x');
        for (const size_t step : { 1U, 7U, 64U }) {
            EXPECT_EQ(digest(text, step), digest(text, length)) << length << " by " << step;
        }
    }
}

TEST(Sha256, OfAFile) {
    const std::string path = testing::TempDir() + "sha256_test_" + std::to_string(::getpid());
    std::ofstream(path) << "abc";
    EXPECT_EQ(sha256_of_file(path), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    std::remove(path.c_str());
    EXPECT_THROW(sha256_of_file(path), std::runtime_error);
}

} // namespace
} // namespace cascade::cli
