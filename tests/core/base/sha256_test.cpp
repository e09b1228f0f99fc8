// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/sha256.h"

#include <gtest/gtest.h>

namespace evenkeel {
namespace {

// Vectors: FIPS 180-4 examples (NIST, "SHA256.pdf").
TEST(Sha256, GivesTheStandardsOwnExamples) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotDependOnHowTheBytesArrive) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) bytes.push_back(static_cast<char>(i * 7));
  for (std::size_t piece : {1U, 3U, 55U, 56U, 63U, 64U, 65U, 299U}) {
    Sha256 hash;
    for (std::size_t at = 0; at < bytes.size(); at += piece) hash.update(std::string_view(bytes).substr(at, piece));
    EXPECT_EQ(hash.finish(), sha256(bytes)) << piece;
  }
}

}  // namespace
}  // namespace evenkeel
