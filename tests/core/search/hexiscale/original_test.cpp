// SPDX-License-Identifier: GPL-3.0-or-later
// Our account of public HexiScale against recorded runs of it, with the METIS answers that it got.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/search/hexiscale/original.h"
#include "tests/support/reference_data.h"

namespace evenkeel::hexiscale {
namespace {

constexpr std::array<const char*, 3> kCases = {"repo-default-8", "a10x8-l4x8-16", "a100x8-4090x8-16"};

std::vector<Json> recordedIterations(const std::filesystem::path& folder) {
  std::vector<Json> iterations;
  std::ifstream lines(folder / "iterations.jsonl");
  for (std::string line; std::getline(lines, line);) iterations.push_back(Json::parse(line));
  return iterations;
}

/// Every recorded iteration: stages, layers and memory equal, throughput but for the last bits.
void expectAsRecorded(const std::filesystem::path& folder, Batching batching) {
  const auto given = loadOriginalCase(folder);
  ASSERT_TRUE(given) << given.error().text();
  const auto iterations = replay(*given, batching);
  ASSERT_TRUE(iterations) << iterations.error().text();
  const std::vector<Json> recorded = recordedIterations(folder);
  ASSERT_FALSE(recorded.empty());
  ASSERT_EQ(iterations->size(), recorded.size()) << folder;
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    const Iteration& one = (*iterations)[i];
    ASSERT_EQ(one.pipelines.size(), recorded[i].at("pipelines").size()) << folder << " " << i;
    for (std::size_t p = 0; p < one.pipelines.size(); ++p) {
      const Json& there = recorded[i].at("pipelines")[p];
      ASSERT_EQ(Json(one.pipelines[p].stages), there.at("stages")) << folder << " iteration " << i;
      ASSERT_EQ(Json(one.pipelines[p].layers), there.at("layers")) << folder << " iteration " << i;
      for (std::size_t s = 0; s < one.memoryGib[p].size(); ++s)
        ASSERT_NEAR(one.memoryGib[p][s], there.at("mem_gib_per_device")[s].get<double>(), 1e-12) << folder << " " << i;
    }
    const double throughput = recorded[i].at("throughput");
    ASSERT_NEAR(one.tokensPerSecond, throughput, 4e-15 * throughput) << folder << " iteration " << i;
  }
}

TEST(HexiscaleOriginal, ReplaysTheRecordedRuns) {
  const auto data = referenceData("hexiscale-cases");
  if (!data) GTEST_SKIP() << "no recorded runs of HexiScale";
  for (const char* name : kCases) expectAsRecorded(*data / name, Batching::AsShipped);
}

TEST(HexiscaleOriginal, ReplaysTheRecordedRunsWithFaultB1Mended) {
  const auto data = referenceData("hexiscale-cases");
  if (!data) GTEST_SKIP() << "no recorded runs of HexiScale";
  for (const char* name : kCases) expectAsRecorded(*data / name / "mbfix", Batching::Consistent);
}

// B1: as shipped, fewer pipelines win because they are credited with samples that they never train.
TEST(HexiscaleOriginal, FaultB1ChangesTheChoice) {
  const auto data = referenceData("hexiscale-cases");
  if (!data) GTEST_SKIP() << "no recorded runs of HexiScale";
  const auto given = loadOriginalCase(*data / "a10x8-l4x8-16");
  ASSERT_TRUE(given) << given.error().text();
  const auto best = [&](Batching batching) {
    const auto iterations = *replay(*given, batching);
    return std::ranges::max_element(iterations, {}, &Iteration::tokensPerSecond)->pipelines.size();
  };
  EXPECT_EQ(best(Batching::AsShipped), 1U);
  EXPECT_EQ(best(Batching::Consistent), 3U);
}

TEST(HexiscaleOriginal, NamesWhatIsWrongWithACase) {
  const auto missing = loadOriginalCase("/no/such/folder");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().where, ::testing::HasSubstr("case.json"));
}

}  // namespace
}  // namespace evenkeel::hexiscale
