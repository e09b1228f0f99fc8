// SPDX-License-Identifier: GPL-3.0-or-later
// Any plan trains the same curve as one device does, compared step by step. Real workers: all of them in a full run, otherwise the plans that
// together have whatever differs between processes and threads, and the others with ranks in threads.
// torchtitan #1842: a mean of means is wrong where replicas are uneven. Megatron-LM #7452: silent errors where parallelisms
// combine, tied embeddings among them. Megatron-LM #1304: layers lost by a split.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <ostream>

#include "core/plan/violations.h"
#include "tests/runtime/thread_world.h"
#include "tests/runtime/worker_run.h"
#include "tests/support/plans.h"
#include "tests/support/sweep.h"

namespace evenkeel {
namespace {

/// 6 units. The vocabulary of 200 is padded to 256, so padded rows are there to be masked.
Model nano(bool tied) {
  Model model = *modelFromArgument("tiny-gpt");
  model.name = "nano";
  model.layers = 2;
  model.hidden = 32;
  model.heads = 2;
  model.kvHeads = 2;
  model.headDim = 16;
  model.ffn = 64;
  model.vocab = 200;
  model.context = 40;
  model.tiedEmbeddings = tied;
  return model;
}

const std::size_t kSteps = static_cast<std::size_t>(sweep(12, 20));

struct Case {
  std::string name;
  std::string cluster;
  std::vector<PipelineText> pipelines;
  bool tied = true;
  bool needsWorkers = false;
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

std::string d(int index) { return "cpu-0/" + std::to_string(index); }

Plan planFor(const Case& one) {
  Plan plan = planOf(*parseClusterShorthand(one.cluster), nano(one.tied), one.pipelines);
  plan.training.sequenceLength = 32;
  plan.training.zeroStage = one.tied ? 0 : 1;
  return plan;
}

std::vector<Case> cases() {
  return {
      {"MicroBatchesOfOneDevice", "1x1:cpu", {{13, 3, {d(0)}, {0, 6}}}},
      {"TwoStages", "1x2:cpu", {{13, 4, {d(0), d(1)}, {0, 3, 6}}}},
      {"TwoStagesUntied", "1x2:cpu", {{13, 2, {d(0), d(1)}, {0, 4, 6}}}, false, true},
      {"EmbeddingAlone", "1x2:cpu", {{7, 1, {d(0), d(1)}, {0, 1, 6}}}},
      {"HeadAloneAndOneUnitBetween", "1x3:cpu", {{7, 2, {d(0), d(1), d(2)}, {0, 4, 5, 6}}}},
      {"FourStagesFewerMicroBatches", "1x4:cpu", {{5, 3, {d(0), d(1), d(2), d(3)}, {0, 1, 3, 4, 6}}}},
      {"FourStagesOneMicroBatch", "1x4:cpu", {{5, 5, {d(3), d(2), d(1), d(0)}, {0, 2, 3, 5, 6}}}, false},
      {"ThreePipelinesOfOneDevice", "1x3:cpu", {{5, 2, {d(0)}, {0, 6}}, {4, 4, {d(1)}, {0, 6}}, {4, 3, {d(2)}, {0, 6}}}},
      {"ThreePipelinesUntied", "1x3:cpu", {{6, 2, {d(2)}, {0, 6}}, {1, 1, {d(0)}, {0, 6}}, {6, 5, {d(1)}, {0, 6}}}, false},
      {"OneAndTwoStages", "1x3:cpu", {{3, 2, {d(1)}, {0, 6}}, {8, 3, {d(2), d(0)}, {0, 2, 6}}}},
      {"TwoPipelinesCutDifferently", "1x4:cpu", {{6, 2, {d(0), d(1)}, {0, 2, 6}}, {5, 1, {d(2), d(3)}, {0, 5, 6}}}},
      {"TwoPipelinesCutDifferentlyUntied", "1x4:cpu", {{7, 3, {d(0), d(2)}, {0, 1, 6}}, {4, 2, {d(3), d(1)}, {0, 4, 6}}}, false},
      {"OneTwoAndThreeStages",
       "1x6:cpu",
       {{2, 1, {d(0)}, {0, 6}}, {4, 2, {d(1), d(2)}, {0, 3, 6}}, {7, 2, {d(3), d(4), d(5)}, {0, 1, 4, 6}}},
       true,
       true},
      {"UnlikeSpeeds", "1x2:cpu@0.5,1x1:cpu", {{2, 1, {"cpu-0/0", "cpu-0/1"}, {0, 2, 6}}, {5, 2, {"cpu-1/0"}, {0, 6}}}, true, true},
  };
}

/// Seven ranks: a stage of two shards, then one of three replicas with unlike shares, the last micro-batch ragged; the same units
/// as one replica in a second pipeline of two shards.
Plan planOfGroups() {
  Plan plan = planFor({"", "1x7:cpu", {{8, 4, {d(0), d(2)}, {0, 3, 6}}, {5, 2, {d(5)}, {0, 6}}}});
  const auto widen = [&](Stage& stage, int tp, int dp) {
    stage.tp = tp;
    stage.dp = dp;
    while (stage.devices.size() < static_cast<std::size_t>(tp * dp))
      stage.devices.push_back({stage.devices.back().node, stage.devices.back().index + 1});
  };
  widen(plan.pipelines[0].stages[0], 2, 1);
  widen(plan.pipelines[0].stages[1], 1, 3);
  widen(plan.pipelines[1].stages[0], 2, 1);
  plan.pipelines[0].stages[1].shares = {2, 1, 1};
  plan.pipelines[0].stages[1].recompute = {{{3, 5}, {Op::Softmax, Op::Context, Op::Activation}}};
  return plan;
}

struct Curve {
  std::vector<double> losses, gradientNorms;
  bool operator==(const Curve&) const = default;
};

/// The curve of a run of real workers, the same on all ranks; it must succeed.
Curve curveOfWorkers(const Plan& plan) {
  WorkerRun run({.plan = plan, .steps = static_cast<std::int64_t>(kSteps)});
  run.start();
  const std::vector<RankOutcome> outcomes = run.finish();
  const Curve curve{outcomes[0].ofSteps("loss"), outcomes[0].ofSteps("grad_norm")};
  for (std::size_t r = 0; r < outcomes.size(); ++r) {
    EXPECT_EQ(outcomes[r].exitStatus, 0) << "rank " << r << ": " << outcomes[r].log;
    EXPECT_EQ(outcomes[r].ofSteps("loss"), curve.losses) << "every rank reports the same global loss";
    EXPECT_EQ(outcomes[r].ofSteps("grad_norm"), curve.gradientNorms);
    EXPECT_NE(outcomes[r].last("finished"), nullptr);
  }
  return curve;
}

/// The same with ranks in threads.
Curve curveOfThreads(const Plan& plan) {
  const WorldOutcome outcome = trainInThreads(plan, runOf({.plan = plan, .steps = static_cast<std::int64_t>(kSteps)}), trainingText());
  EXPECT_THAT(outcome.errors, ::testing::Each(""));
  const Curve curve{outcome.ofSteps(0, "loss"), outcome.ofSteps(0, "grad_norm")};
  for (int rank = 1; rank < static_cast<int>(outcome.errors.size()); ++rank) {
    EXPECT_EQ(outcome.ofSteps(rank, "loss"), curve.losses);
    EXPECT_EQ(outcome.ofSteps(rank, "grad_norm"), curve.gradientNorms);
  }
  return curve;
}

Curve newCurveOf(const Plan& plan, bool needsWorkers) {
  EXPECT_TRUE(shapeViolations(plan).empty());
  return needsWorkers || isFullRun() ? curveOfWorkers(plan) : curveOfThreads(plan);
}
Curve newCurveOf(const Case& one) { return newCurveOf(planFor(one), one.needsWorkers); }

/// Starting workers is most of the time: what one test has run, the next ones of this process compare with.
const Curve& curveOf(const Case& one) {
  static std::map<std::string, Curve> known;
  const auto found = known.find(one.name);
  return found != known.end() ? found->second : known.emplace(one.name, newCurveOf(one)).first->second;
}

const Curve& curveOfOneDevice(bool tied, std::int64_t batch) {
  return curveOf({fmt::format("one device, batch {}{}", batch, tied ? "" : ", untied"),
                  "1x1:cpu",
                  {{batch, static_cast<int>(batch), {d(0)}, {0, 6}}},
                  tied,
                  batch == 13});
}

class Oracle : public ::testing::TestWithParam<Case> {};

TEST_P(Oracle, TrainsTheCurveOfOneDevice) {
  const Case& one = GetParam();
  std::int64_t batch = 0;
  for (const PipelineText& pipeline : one.pipelines) batch += pipeline.localBatch;
  const Curve& curve = curveOf(one);
  const Curve& expected = curveOfOneDevice(one.tied, batch);
  ASSERT_EQ(curve.losses.size(), kSteps);
  ASSERT_EQ(expected.losses.size(), kSteps);
  for (std::size_t step = 0; step < kSteps; ++step) {
    EXPECT_NEAR(curve.losses[step], expected.losses[step], 1e-5 * expected.losses[step]) << "step " << step + 1;
    EXPECT_NEAR(curve.gradientNorms[step], expected.gradientNorms[step], 1e-4 * expected.gradientNorms[step])
        << "step " << step + 1;
  }
  EXPECT_NEAR(expected.losses.front(), std::log(200.0), 0.1) << "an untrained model guesses evenly among the real vocabulary";
  EXPECT_LT(expected.losses.back(), 0.7 * expected.losses.front()) << "it must have learned something to compare";
}

INSTANTIATE_TEST_SUITE_P(Plans, Oracle, ::testing::ValuesIn(cases()), [](const auto& one) { return one.param.name; });

TEST(OracleOfGroups, TrainsTheCurveOfOneDevice) {
  const Curve curve = newCurveOf(planOfGroups(), true);
  const Curve& expected = curveOfOneDevice(true, 13);
  ASSERT_EQ(curve.losses.size(), kSteps);
  for (std::size_t step = 0; step < kSteps; ++step) {
    EXPECT_NEAR(curve.losses[step], expected.losses[step], 1e-5 * expected.losses[step]) << "step " << step + 1;
    EXPECT_NEAR(curve.gradientNorms[step], expected.gradientNorms[step], 1e-4 * expected.gradientNorms[step])
        << "step " << step + 1;
  }
}

TEST(OracleRepeats, WithTheSameBits) {
  for (const Case& one : cases()) {
    const bool isInShortRun = one.name == "OneTwoAndThreeStages" || one.name == "UnlikeSpeeds";
    if (!isInShortRun && !isFullRun()) continue;
    EXPECT_EQ(newCurveOf(one), curveOf(one)) << one.name;
  }
}

}  // namespace
}  // namespace evenkeel
