// SPDX-License-Identifier: GPL-3.0-or-later
// 300 steps of tiny-gpt on real text (our own documents) under three unlike plans: where they end is where one device ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "tests/runtime/random_plans.h"
#include "tests/runtime/thread_world.h"
#include "tests/support/plans.h"
#include "tests/support/sweep.h"

namespace evenkeel {
namespace {

std::string documents() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(std::filesystem::path(EVENKEEL_SOURCE_DIR) / "resources/docs")) {
    if (entry.path().extension() == ".md") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  std::string text;
  for (const auto& file : files) {
    std::ifstream stream(file, std::ios::binary);
    text.append(std::istreambuf_iterator<char>(stream), {});
  }
  return text;
}

std::string d(int index) { return "cpu-0/" + std::to_string(index); }

std::vector<Plan> unlikePlans() {
  const Model model = *modelFromArgument("tiny-gpt");
  const int units = model.unitCount();
  const Cluster cluster = *parseClusterShorthand("1x6:cpu");
  std::vector<Plan> plans = {planOf(cluster, model, {{4, 2, {d(0), d(1), d(2)}, {0, 5, 11, units}}}),
                             planOf(cluster, model, {{3, 1, {d(0), d(1)}, {0, 7, units}}, {1, 1, {d(3)}, {0, units}}}),
                             planOf(cluster, model, {{4, 4, {d(0), d(4)}, {0, 9, units}}})};
  Stage& shards = plans[2].pipelines[0].stages[0];
  shards.tp = 4;
  shards.devices = {{0, 0}, {0, 1}, {0, 2}, {0, 3}};
  shards.recompute = {{{1, 9}, {Op::Norm1, Op::Qkv, Op::Score, Op::Softmax, Op::Context}}};
  for (Plan& plan : plans) plan.training.sequenceLength = 64;
  plans[1].training.zeroStage = 1;
  return plans;
}

TEST(Convergence, IsThatOfOneDeviceUnderAnyPlan) {
  if (!isFullRun()) GTEST_SKIP() << "minutes long: with EVENKEEL_FULL=1";
  evenkeel::Run settings;
  settings.steps = 300;
  const std::string text = documents();
  const std::vector<Plan> plans = unlikePlans();
  const WorldOutcome one = trainInThreads(planOfOneDevice(plans[0]), settings, text);
  ASSERT_THAT(one.errors, ::testing::Each(""));
  const std::vector<double> losses = one.ofSteps(0, "loss");
  EXPECT_LT(losses.back(), 0.7 * losses.front());  // it learns; by how much depends on what our documents say today
  for (std::size_t p = 0; p < plans.size(); ++p) {
    const WorldOutcome all = trainInThreads(plans[p], settings, text);
    ASSERT_THAT(all.errors, ::testing::Each("")) << p;
    EXPECT_NEAR(all.ofSteps(0, "loss").back(), losses.back(), 1e-3 * losses.back()) << "plan " << p;
    std::printf("plan %zu: loss %.6f after 300 steps, one device %.6f\n", p, all.ofSteps(0, "loss").back(), losses.back());
  }
}

}  // namespace
}  // namespace evenkeel
