// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/token_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/support/temporary_directory.h"

namespace evenkeel {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class TokenFilesTest : public ::testing::Test {
 protected:
  Result<TokenFiles> opened(const std::string& index, std::size_t binBytes) const {
    (void)folder_.file("x.idx", index);
    (void)folder_.file("x.bin", std::string(binBytes, '\1'));
    return openTokenFiles(*tokenFilesNamed((folder_.path() / "x").string()));
  }
  std::string errorOf(const std::string& index, std::size_t binBytes) const {
    const auto files = opened(index, binBytes);
    return files ? "none" : files.error().text();
  }
  TemporaryDirectory folder_;
};

TEST_F(TokenFilesTest, AreFoundUnderEachOfTheirNames) {
  (void)folder_.file("corpus.idx", "");
  EXPECT_FALSE(tokenFilesNamed((folder_.path() / "nothing").string()));
  EXPECT_TRUE(tokenFilesNamed((folder_.path() / "corpus").string())) << "half of a pair, as openTokenFiles says";
  (void)folder_.file("corpus.bin", "");
  for (const char* name : {"corpus", "corpus.bin", "corpus.idx"}) {
    const auto files = tokenFilesNamed((folder_.path() / name).string());
    ASSERT_TRUE(files) << name;
    EXPECT_EQ(files->bin.filename(), "corpus.bin");
    EXPECT_EQ(files->idx.filename(), "corpus.idx");
  }
  (void)folder_.file("half.bin", "tokens whose index was lost: no text");
  const auto half = tokenFilesNamed((folder_.path() / "half.bin").string());
  ASSERT_TRUE(half);
  EXPECT_THAT(openTokenFiles(*half).error().text(), ::testing::AllOf(HasSubstr("half.idx: cannot be read"), HasSubstr("it belongs beside")));
  (void)folder_.file("notes", "text that shares its name with half a pair");
  (void)folder_.file("notes.bin", "");
  EXPECT_FALSE(tokenFilesNamed((folder_.path() / "notes").string()));
}

TEST_F(TokenFilesTest, CountWhatIsInThem) {
  for (const auto& [word, type] : kTokenTypes) {
    const auto files = opened(tokenIndex(type, {5, 0, 1000, 7}), static_cast<std::size_t>(1012 * bytesOf(type)));
    ASSERT_TRUE(files) << files.error().text();
    EXPECT_EQ(files->type, type);
    EXPECT_EQ(files->tokens, 1012);
    EXPECT_EQ(files->sequences, 4);
    EXPECT_EQ(files->documents, 4);
  }
  std::string withKinds = tokenIndex(TokenType::Uint16, {5, 6});
  withKinds += std::string(2, '\0');  // of several kinds of data: a byte for each sequence
  EXPECT_TRUE(opened(withKinds, 22));
}

// The bytes as Megatron-LM's indexed_dataset.py packs them ("<Q", "<B", "<i4", "<i8"), written by hand.
TEST_F(TokenFilesTest, HaveTheBytesOfMegatron) {
  using namespace std::string_literals;
  const std::string expected =
      "MMIDIDX\0\0"s + "\1\0\0\0\0\0\0\0"s + "\10"s + "\2\0\0\0\0\0\0\0"s + "\3\0\0\0\0\0\0\0"s +  // version 1, uint16, 2 sequences, 3 bounds
      "\3\0\0\0\2\0\0\0"s +                                                                         // lengths 3 and 2
      "\0\0\0\0\0\0\0\0\6\0\0\0\0\0\0\0"s +                                                         // at byte 0 and 6
      "\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0"s;                                          // documents
  EXPECT_EQ(tokenIndex(TokenType::Uint16, {3, 2}), expected);
}

// Megatron-LM #81, gpt-neox #1329, lm-engine #53 (field-faults): broken pairs end in bare assertions.
TEST_F(TokenFilesTest, SayWhatIsWrongWithThem) {
  const std::string good = tokenIndex(TokenType::Int32, {3, 2});
  EXPECT_EQ(errorOf(good, 20), "none");
  EXPECT_THAT(errorOf(good, 19), HasSubstr("x.bin: has 19 bytes, but"));
  EXPECT_THAT(errorOf(good, 0), HasSubstr("says 5 tokens of 4 bytes"));
  EXPECT_THAT(errorOf(good.substr(0, 20), 20), HasSubstr("is cut off: it has 20 bytes"));
  EXPECT_THAT(errorOf(good.substr(0, good.size() - 1), 20), HasSubstr("too few for 2 sequences and 2 documents"));
  EXPECT_THAT(errorOf(good + "abc", 20), HasSubstr("3 bytes more than its header says"));
  EXPECT_THAT(errorOf("", 20), HasSubstr("does not begin with MMIDIDX"));
  EXPECT_THAT(errorOf("version https://git-lfs.github.com/spec/v1\noid sha256:0\n", 20), HasSubstr("Git LFS pointer"));
  EXPECT_THAT(errorOf(std::string("TNTIDX\0\0", 8) + good, 20), HasSubstr("fairseq's old format"));
  const auto with = [&](std::size_t at, char byte) {
    std::string bytes = good;
    bytes[at] = byte;
    return bytes;
  };
  EXPECT_THAT(errorOf(with(9, '\2'), 20), HasSubstr("is of version 2"));
  EXPECT_THAT(errorOf(with(17, '\7'), 20), HasSubstr("holds float32 numbers, which are no tokens"));
  EXPECT_THAT(errorOf(with(17, '\77'), 20), HasSubstr("unknown kind, 63"));
  EXPECT_THAT(errorOf(with(25, '\177'), 20), HasSubstr("too few"));                                            // sequences
  EXPECT_THAT(errorOf(with(37, '\xff'), 20), HasSubstr("says that sequence 0 has -16777213 tokens"));          // its length
  EXPECT_THAT(errorOf(with(50, '\7'), 20), HasSubstr("sequence 1 begins at byte 7, but the one before it ends at 12"));
  EXPECT_THAT(errorOf(with(58, '\1'), 20), HasSubstr("the first document begins with sequence 1"));
  EXPECT_THAT(errorOf(with(66, '\5'), 20), HasSubstr("document 2 begins before the one in front of it"));
  EXPECT_THAT(errorOf(with(74, '\1'), 20), HasSubstr("its documents end with sequence 1 of 2"));
  EXPECT_THAT(errorOf(tokenIndex(TokenType::Int32, {}), 0), HasSubstr("holds no tokens"));
  fs::remove(folder_.path() / "x.bin");
  EXPECT_THAT(openTokenFiles(*tokenFilesNamed((folder_.path() / "x.idx").string())).error().text(), HasSubstr("x.bin: cannot be read"));
}

TEST_F(TokenFilesTest, EndWithFilesOrAnErrorForEveryMutation) {
  std::mt19937_64 random(3);
  const std::string good = tokenIndex(TokenType::Uint16, {3, 2, 9});
  int refused = 0;
  for (int round = 0; round < 500; ++round) {
    std::string bytes = good;
    for (int change = 0; change < 2; ++change) bytes[random() % bytes.size()] = static_cast<char>(random() % 256);
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    const auto files = opened(bytes, 28);
    refused += files ? 0 : 1;
    if (files) {
      EXPECT_EQ(files->tokens * bytesOf(files->type), 28);
    }
  }
  EXPECT_GT(refused, 400);
}

}  // namespace
}  // namespace evenkeel
