// SPDX-License-Identifier: GPL-3.0-or-later
// How near the cost model comes to what others measured; bench_accuracy prints the tables. Limits stand a little above what it
// reaches.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/bench/accuracy/predict_run.h"
#include "tests/bench/accuracy/v100.h"
#include "tests/support/reference_data.h"

namespace evenkeel::accuracy {
namespace {

TEST(Accuracy, OfMeasuredRunsIsWithinItsLimits) {
  const auto file = referenceData("sailor/measured_runs.csv");
  if (!file) GTEST_SKIP() << "no reference data";
  const auto runs = loadRuns(*file);
  ASSERT_TRUE(runs.ok()) << runs.error().text();
  struct Sum {
    double time = 0, memory = 0, under = 0;
    int times = 0, memories = 0;
  };
  std::map<std::string, Sum> sums;
  for (const MeasuredRun& run : *runs) {
    const auto prediction = predict(run, file->parent_path().parent_path());
    if (!run.time && !run.peak) continue;
    ASSERT_TRUE(prediction.ok()) << prediction.error().text();
    Sum& sum = sums[run.set()];
    if (run.time) {
      sum.time += std::abs(prediction->time / *run.time - 1);
      ++sum.times;
    }
    if (run.peak) {
      sum.memory += std::abs(prediction->peak / *run.peak - 1);
      sum.under = std::max(sum.under, 1 - prediction->peak / *run.peak);
      ++sum.memories;
    }
  }
  const std::map<std::string, double> limits = {
      {"gh200-opt", 0.06}, {"gh200-neo", 0.07}, {"mit-2", 0.08}, {"mit-1", 0.04}, {"aceso", 0.05}};
  for (const auto& [set, limit] : limits) {
    const Sum& sum = sums.at(set);
    EXPECT_LE(sum.time / sum.times, limit) << set;
    if (sum.memories == 0) continue;
    EXPECT_LE(sum.memory / sum.memories, 0.05) << set;
    EXPECT_LE(sum.under, 0.03) << set;
  }
}

TEST(Accuracy, OfTheAnalyticProfileOnV100IsWithinItsLimits) {
  const auto file = referenceData("aceso/gpt_ops_v100.csv");
  if (!file) GTEST_SKIP() << "no reference data";
  const auto errors = v100Errors(file->parent_path().parent_path());
  ASSERT_TRUE(errors.ok()) << errors.error().text();
  EXPECT_EQ(errors->generic.cells, 89);
  EXPECT_LE(errors->heldOut.forward, 0.04);
  EXPECT_LE(errors->heldOut.backward, 0.05);
  EXPECT_LE(errors->generic.forward, 0.05);
  EXPECT_LE(errors->generic.backward, 0.08);
}

TEST(Accuracy, OfCollectivesOnV100IsWithinFivePercent) {
  const auto file = referenceData("aceso/collectives_v100.csv");
  if (!file) GTEST_SKIP() << "no reference data";
  const auto errors = collectiveErrors(file->parent_path().parent_path());
  ASSERT_TRUE(errors.ok()) << errors.error().text();
  for (const CollectiveError& e : *errors) EXPECT_LE(e.error, 0.05) << e.collective << " " << e.type << " " << e.gpus;
}

}  // namespace
}  // namespace evenkeel::accuracy
