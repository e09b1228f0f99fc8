// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tests/support/temporary_directory.h"

namespace evenkeel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string bytesOf(const std::vector<float>& values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// Two tensors: a of 2 x 3, b of one number.
std::string example() {
  return safetensorsHeader({{"a", "F32", {2, 3}, 0, 24}, {"b", "F32", {}, 24, 28}}, {{"format", "pt"}}) + bytesOf({1, 2, 3, 4, 5, 6, 7});
}

TEST(Safetensors, AreReadAsTheyWereWritten) {
  const TemporaryDirectory folder;
  const auto file = SafetensorsFile::open(folder.file("x.safetensors", example()));
  ASSERT_TRUE(file) << file.error().text();
  ASSERT_EQ(file->tensors().size(), 2U);
  std::vector<float> a(6), b(1);
  ASSERT_TRUE(file->read(*file->find("a"), a));
  ASSERT_TRUE(file->read(*file->find("b"), b));
  EXPECT_THAT(a, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(b, ElementsAre(7));
  EXPECT_EQ(file->find("c"), nullptr);
  EXPECT_THAT(file->read(*file->find("a"), b).error().text(), HasSubstr("24 bytes, 4 are needed"));
}

// safetensors #668, airllm #137 (field-faults).
TEST(Safetensors, SayWhatIsWrongWithAFile) {
  const TemporaryDirectory folder;
  const auto errorOf = [&](const std::string& bytes) {
    const auto file = SafetensorsFile::open(folder.file("x.safetensors", bytes));
    return file ? std::string("none") : file.error().text();
  };
  const auto withHeader = [](const std::string& json, const std::string& data) {
    std::string bytes(8, '\0');
    bytes[0] = static_cast<char>(json.size());
    return bytes + json + data;
  };
  EXPECT_EQ(errorOf(example()), "none");
  EXPECT_THAT(errorOf(example().substr(0, example().size() - 5)), HasSubstr("is cut off: 5 bytes are missing"));
  EXPECT_THAT(errorOf(example().substr(0, 40)), HasSubstr("missing from its header"));
  EXPECT_THAT(errorOf("abc"), HasSubstr("is cut off"));
  EXPECT_THAT(errorOf(""), HasSubstr("is cut off"));
  EXPECT_THAT(errorOf(example() + "x"), HasSubstr("1 bytes more than its header says"));
  EXPECT_THAT(errorOf("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n"), HasSubstr("Git LFS pointer"));
  EXPECT_THAT(errorOf(std::string(8, '\xff') + "{}"), HasSubstr("the format allows"));
  EXPECT_THAT(errorOf(withHeader("{\"a\"", "")), HasSubstr("header"));
  EXPECT_THAT(errorOf(withHeader(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "1234")), HasSubstr("the shape needs 8"));
  EXPECT_THAT(errorOf(withHeader(R"({"a":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}})", "1234")), HasSubstr("F33"));
  EXPECT_THAT(errorOf(withHeader(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", "1234")), HasSubstr("rising"));
  EXPECT_THAT(errorOf(withHeader(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", "123")), HasSubstr("overlap"));
  EXPECT_THAT(SafetensorsFile::open("/nonexistent/x").error().text(), HasSubstr("No such file"));
  EXPECT_THAT(SafetensorsFile::open("/tmp").error().text(), HasSubstr("no regular file"));
}

TEST(Safetensors, EndWithAFileOrAnErrorForEveryMutation) {
  const TemporaryDirectory folder;
  std::mt19937_64 random(11);
  for (int round = 0; round < 300; ++round) {
    std::string bytes = example();
    for (int change = 0; change < 3; ++change) bytes[random() % bytes.size()] = static_cast<char>(random() % 256);
    const auto file = SafetensorsFile::open(folder.file("x.safetensors", bytes));
    if (!file) continue;
    for (const StoredTensor& tensor : file->tensors()) {
      std::vector<float> values(static_cast<std::size_t>((tensor.last - tensor.first) / 4));
      // A header that was accepted lies in the file: what it names can be read, or says that it holds other numbers.
      const auto read = file->read(tensor, values);
      EXPECT_TRUE(read || read.error().code == Error::Code::InvalidInput) << tensor.name;
      EXPECT_TRUE(read || tensor.type != "F32" || (tensor.last - tensor.first) % 4 != 0) << read.error().text();
    }
  }
}

}  // namespace
}  // namespace evenkeel
