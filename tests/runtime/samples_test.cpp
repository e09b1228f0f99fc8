// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data/samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/base/json.h"
#include "tests/support/plans.h"

namespace evenkeel {
namespace {

using ::testing::HasSubstr;

std::filesystem::path fileOf(const std::string& name, const std::string& bytes) {
  const auto file = std::filesystem::path(::testing::TempDir()) / ("samples_" + name);
  EXPECT_TRUE(writeFileAtomically(file, bytes));
  return file;
}

TEST(Samples, AreTrainedOnceEachUnderEveryPlan) {
  // Public planners trained 80 of 100 samples; a prime global batch over uneven pipelines must lose none.
  const auto plan = planOf(*parseClusterShorthand("1x3:cpu"), *modelFromArgument("tiny-gpt"),
                           {{5, 2, {"cpu-0/0"}, {0, 18}}, {1, 1, {"cpu-0/1"}, {0, 18}}, {7, 3, {"cpu-0/2"}, {0, 18}}});
  std::vector<std::int64_t> seen;
  for (std::size_t p = 0; p < plan.pipelines.size(); ++p) {
    for (std::int64_t m = 0; m < plan.pipelines[p].microBatchCount(); ++m) {
      const SampleRange range = samplesOfMicroBatch(plan, p, m);
      for (int i = 0; i < range.count; ++i) seen.push_back(range.first + i);
    }
  }
  std::vector<std::int64_t> all(13);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
  EXPECT_EQ(seen, all);
  EXPECT_EQ(samplesOfMicroBatch(plan, 2, 2), (SampleRange{12, 1}));
}

TEST(Samples, DependOnSeedStepAndIndexOnly) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>('a' + i * i % 26);
  const auto file = fileOf("text", text);
  const auto samples = TokenSamples::open(file, {.sequenceLength = 16, .seed = 7});
  const auto again = TokenSamples::open(file, {.sequenceLength = 16, .seed = 7});
  const auto other = TokenSamples::open(file, {.sequenceLength = 16, .seed = 8});
  ASSERT_TRUE(samples && again && other);
  std::vector<std::int64_t> window(17);
  ASSERT_TRUE(again->read(3, 9, window));  // asked for in another order
  ASSERT_TRUE(samples->read(0, 0, window));
  ASSERT_TRUE(samples->read(3, 9, window));
  EXPECT_EQ(std::string(window.begin(), window.end()), text.substr(static_cast<std::size_t>(samples->positionOf(3, 9)), 17));
  std::set<std::int64_t> positions;
  int differing = 0;
  for (std::int64_t step = 0; step < 10; ++step) {
    for (std::int64_t i = 0; i < 10; ++i) {
      positions.insert(samples->positionOf(step, i));
      EXPECT_EQ(samples->positionOf(step, i), again->positionOf(step, i));
      differing += samples->positionOf(step, i) != other->positionOf(step, i) ? 1 : 0;
    }
  }
  EXPECT_GT(positions.size(), 90U);
  EXPECT_GT(differing, 90);
}

TEST(Samples, TakeAFileOfExactlyOneWindow) {
  const auto samples = TokenSamples::open(fileOf("window", std::string(17, 'x')), {.sequenceLength = 16});
  ASSERT_TRUE(samples);
  for (std::int64_t i = 0; i < 20; ++i) EXPECT_EQ(samples->positionOf(0, i), 0);
}

TEST(Samples, SayWhatIsWrongWithAFile) {
  EXPECT_THAT(TokenSamples::open(fileOf("short", std::string(16, 'x')), {.sequenceLength = 16}).error().text(),
              HasSubstr("has 16 tokens, fewer than the 17 of one sample"));
  EXPECT_THAT(TokenSamples::open(fileOf("empty", ""), {.sequenceLength = 16}).error().text(), HasSubstr("has 0 tokens"));
  EXPECT_THAT(TokenSamples::open("/nowhere/text", {.sequenceLength = 16}).error().text(),
              HasSubstr("/nowhere/text: cannot be read: No such file"));
  EXPECT_THAT(TokenSamples::open(::testing::TempDir(), {.sequenceLength = 16}).error().text(), HasSubstr("is no regular file"));
  std::string text(17, 'x');
  text[5] = '\xc3';
  std::vector<std::int64_t> window(17);
  EXPECT_THAT(TokenSamples::open(fileOf("umlaut", text), {.sequenceLength = 16, .vocab = 128})->read(0, 0, window).error().text(),
              HasSubstr("token 5 is 195, outside of the model's vocabulary of 128"));
  EXPECT_TRUE(TokenSamples::open(fileOf("umlaut", text), {.sequenceLength = 16, .vocab = 196})->read(0, 0, window));
  EXPECT_THAT(TokenSamples::open(fileOf("odd", text), {.sequenceLength = 4, .type = TokenType::Uint16}).error().text(),
              HasSubstr("has 17 bytes, no whole number of tokens of 2 bytes"));
}

// Megatron's .bin files, and parts of a file: what is evaluated on stands behind what is trained on.
TEST(Samples, AreTokensOfEveryType) {
  for (const auto& [word, type] : kTokenTypes) {
    const auto width = static_cast<std::size_t>(bytesOf(type));
    const auto tokenOf = [&](std::int64_t i) { return type == TokenType::Uint8 ? i % 256 : 100 + 37 * i; };
    std::string bytes;
    for (std::int64_t i = 0; i < 500; ++i) {
      for (std::size_t b = 0; b < width; ++b) bytes += static_cast<char>(static_cast<std::uint64_t>(tokenOf(i)) >> (8 * b) & 0xffU);
    }
    const auto begin = static_cast<std::int64_t>(100 * width), end = static_cast<std::int64_t>(400 * width);
    const auto samples = TokenSamples::open(fileOf(std::string(word), bytes), {.sequenceLength = 16, .vocab = 20'000, .first = begin, .last = end, .type = type});
    ASSERT_TRUE(samples) << samples.error().text();
    EXPECT_EQ(samples->tokens(), 300);
    std::vector<std::int64_t> window(17);
    for (std::int64_t sample = 0; sample < 50; ++sample) {
      ASSERT_TRUE(samples->read(2, sample, window));
      for (std::int64_t i = 0; i < 17; ++i) EXPECT_EQ(window[static_cast<std::size_t>(i)], tokenOf(100 + samples->positionOf(2, sample) + i)) << word;
    }
  }
}

TEST(Samples, SayWhenTheFileShrinksWhileItIsRead) {
  const auto file = fileOf("shrinks", std::string(1000, 'x'));
  const auto samples = TokenSamples::open(file, {.sequenceLength = 16});
  ASSERT_TRUE(samples);
  std::filesystem::resize_file(file, 0);
  std::vector<std::int64_t> window(17);
  const auto read = samples->read(0, 0, window);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().text(), HasSubstr("became shorter than 1000 tokens"));
}

}  // namespace
}  // namespace evenkeel
