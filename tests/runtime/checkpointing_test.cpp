// SPDX-License-Identifier: GPL-3.0-or-later
// A run that goes on under another plan trains the curve that it would have trained: Megatron-LM #1517, Megatron-DeepSpeed #405 (field-faults).
#include "runtime/train/checkpointing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "tests/runtime/random_plans.h"
#include "tests/runtime/thread_world.h"
#include "tests/support/sweep.h"
#include "tests/support/temporary_directory.h"

namespace evenkeel {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kSteps = 8, kBatch = 11;

const std::string& text() {
  static const std::string text = [] {
    std::string lines;
    for (int i = 0; i < 300; ++i) lines += std::to_string(i * i % 89) + " sails and " + std::to_string(i) + " oars move one boat.\n";
    return lines;
  }();
  return text;
}

Run runWith(const std::filesystem::path& directory) {
  Run run;
  run.steps = kSteps;
  run.learningRate.peak = 3e-3;
  run.learningRate.warmupSteps = 2;
  run.gradientClip = 0.5;
  run.dropout = 0.2;
  run.checkpoint = {.every = 3, .keep = 9, .directory = directory.string()};
  return run;
}

TEST(Resume, UnderAnotherRandomPlanTrainsTheSameCurve) {
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(sweep(6, 40)); ++seed) {
    const TemporaryDirectory folder;
    const auto run = runWith(folder.path());
    const Plan before = randomPlan(seed, randomModel(seed), kBatch), after = randomPlan(seed + 1000, randomModel(seed), kBatch);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + toJson(before)["pipelines"].dump() + " then " + toJson(after)["pipelines"].dump());
    const WorldOutcome whole = trainInThreads(before, run, text());
    ASSERT_THAT(whole.errors, Each(""));
    ASSERT_EQ(whole.checkpoints.size(), 3U);  // steps 3, 6 and the last
    const WorldOutcome resumed = trainInThreads(after, run, text(), whole.checkpoints[0]);
    ASSERT_THAT(resumed.errors, Each(""));
    EXPECT_THAT(resumed.warnings, IsEmpty());
    const auto losses = whole.ofSteps(0, "loss"), norms = whole.ofSteps(0, "grad_norm"), later = resumed.ofSteps(0, "loss"), laterNorms = resumed.ofSteps(0, "grad_norm");
    ASSERT_EQ(later.size(), static_cast<std::size_t>(kSteps - 3));
    EXPECT_EQ(resumed.ofSteps(0, "step").front(), 4);
    for (std::size_t i = 0; i < later.size(); ++i) {
      EXPECT_NEAR(later[i], losses[i + 3], 1e-5 * losses[i + 3]) << "step " << i + 4;
      EXPECT_NEAR(laterNorms[i], norms[i + 3], 1e-5 * norms[i + 3]) << "step " << i + 4;
    }
  }
}

TEST(Resume, OfAFolderTakesTheNewestAndTheSamePlanGivesTheSameBits) {
  const TemporaryDirectory folder;
  const auto run = runWith(folder.path());
  const Plan plan = randomPlan(3, randomModel(3), kBatch);
  const WorldOutcome whole = trainInThreads(plan, run, text());
  ASSERT_THAT(whole.errors, Each(""));
  std::filesystem::remove_all(whole.checkpoints[2]);
  const WorldOutcome resumed = trainInThreads(plan, run, text(), folder.path().string());
  ASSERT_THAT(resumed.errors, Each(""));
  EXPECT_EQ(resumed.ofSteps(0, "step").front(), 7);
  EXPECT_EQ(resumed.ofSteps(0, "loss").back(), whole.ofSteps(0, "loss").back());
}

TEST(Resume, SaysWhatIsNotAsItWas) {
  const TemporaryDirectory folder;
  auto run = runWith(folder.path());
  const Plan plan = planOfOneDevice(randomPlan(1, randomModel(1), kBatch));
  ASSERT_THAT(trainInThreads(plan, run, text()).errors, Each(""));
  EXPECT_THAT(trainInThreads(plan, run, text(), folder.path().string()).errors[0], HasSubstr("is of step 8, and the run is to end at step 8"));
  run.steps = 9;
  run.seed = 2;
  const WorldOutcome resumed = trainInThreads(plan, run, text(), folder.path().string());
  EXPECT_THAT(resumed.errors, Each(""));
  EXPECT_THAT(resumed.warnings, ::testing::Contains(HasSubstr("the seed was 1 when the checkpoint was written, and is 2 now")));
  Plan other = plan;
  other.model.tiedEmbeddings = !other.model.tiedEmbeddings;
  EXPECT_THAT(trainInThreads(other, run, text(), folder.path().string()).errors[0], HasSubstr("is of another model"));
  run.checkpoint.every = 0;
  EXPECT_THAT(trainInThreads(plan, run, text(), "/nonexistent").errors[0], HasSubstr("/nonexistent"));
}

// A full disk costs a checkpoint, not the run. A file size limit stands in for it.
TEST(Checkpointing, ThatFailsWarnsAndTrainsOn) {
  const TemporaryDirectory folder;
  const Plan plan = planOfOneDevice(randomPlan(1, randomModel(1), kBatch));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 40'000, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const WorldOutcome outcome = trainInThreads(plan, runWith(folder.path()), text());
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(outcome.errors, Each(""));
  EXPECT_EQ(outcome.ofSteps(0, "loss").size(), static_cast<std::size_t>(kSteps));
  EXPECT_THAT(outcome.warnings, ::testing::Contains(HasSubstr("the checkpoint of step 3 was not written")));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "nothing half-written is left";
}

TEST(Checkpointing, IsRefusedAtTheStartWhereItCouldNotBeDoneOrWouldMixRuns) {
  const Plan plan = planOfOneDevice(randomPlan(1, randomModel(1), kBatch));
  EXPECT_THAT(trainInThreads(plan, runWith("/proc/evenkeel"), text()).errors[0], HasSubstr("checkpoint directory /proc/evenkeel"));
  const TemporaryDirectory folder;
  ASSERT_THAT(trainInThreads(plan, runWith(folder.path()), text()).errors, Each(""));
  EXPECT_THAT(trainInThreads(plan, runWith(folder.path()), text()).errors[0], HasSubstr("holds checkpoints of another run"));
}

}  // namespace
}  // namespace evenkeel
