// SPDX-License-Identifier: GPL-3.0-or-later
// `optimal` against every plan of tiny clusters (issue 5).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/cost/evaluate.h"
#include "core/cost/memory.h"
#include "tests/core/search/oracle.h"
#include "tests/core/search/problems.h"
#include "tests/core/search/shard.h"

namespace evenkeel {
namespace {

/// At most 6 devices of one to three types in unequal nodes, memory from far too little to plenty, a model of two to four layers.
Problem tinyProblem(std::uint64_t index) {
  const CounterRandom random(index, "every plan");
  std::uint64_t at = 0;
  const auto below = [&](std::uint64_t bound) { return random.below(at++, bound); };
  const std::vector<std::string> types = {"A100-80-SXM", "V100-32-SXM2", "Ascend-910B4", "H100-80-SXM"};
  std::string text;
  int devices = 0;
  for (std::uint64_t part = 0, parts = 1 + below(3), first = below(4); part < parts && devices < 6; ++part) {
    const int perNode = 1 + static_cast<int>(below(std::min<std::uint64_t>(4, static_cast<std::uint64_t>(6 - devices))));
    devices += perNode;
    text += fmt::format("{}1x{}:{}", part > 0 ? "," : "", perNode, types[(first + part * (1 + below(3))) % 4]);
  }
  Cluster cluster = *parseClusterShorthand(text);
  for (Node& node : cluster.nodes) {
    node.nic.bandwidth = (0.05 + random.uniform(at++)) * node.nic.bandwidth;
    node.nicPerDevice = below(2) == 0;
    if (node.devices.size() > 1 && below(6) == 0) node.devices.front().type = static_cast<int>(below(cluster.deviceTypes.size()));
  }
  const std::vector<std::string> models = {"gpt3-350m", "gpt3-1.3b", "llama2-7b"};
  Model model = *modelFromArgument(models[below(3)]);
  model.layers = 2 + static_cast<int>(below(3));
  model.vocab = 2000 + static_cast<std::int64_t>(below(40000));
  const std::vector<std::int64_t> batches = {1, 2, 3, 5, 6, 7, 8, 11, 12, 13};
  Problem problem{std::move(cluster), std::move(model), {}};
  problem.training = resolveTraining({.sequenceLength = 512 * static_cast<std::int64_t>(1 + below(4)),
                                      .globalBatch = batches[below(batches.size())],
                                      .precision = Precision::Fp16,
                                      .zeroStage = static_cast<int>(std::array{0, 1, 1, 2}[below(4)])},
                                     problem.cluster, problem.model);
  // What one device needs to train a sample alone, and from a fraction of it on.
  const AnalyticProfile profile(problem.model, problem.training);
  for (DeviceType& type : problem.cluster.deviceTypes) {
    Plan alone{.cluster = problem.cluster, .model = problem.model, .training = problem.training};
    alone.training.globalBatch = 1;
    for (const DeviceId device : problem.cluster.devices()) {
      if (problem.cluster.typeOf(device).name != type.name) continue;
      alone.pipelines = {{.localBatch = 1, .microBatch = 1, .stages = {{.devices = {device}, .units = {0, problem.model.unitCount()}}}}};
    }
    if (alone.pipelines.empty()) continue;
    const CostModel costs(problem.cluster, problem.model, alone.training, profile);
    const auto whole = static_cast<double>(memoryOf(costs, alone.pipelines)[0][0][0].total().value);
    type.memory = Bytes{static_cast<std::int64_t>((0.25 + 1.5 * random.uniform(at++)) * whole / (1 - kMemoryReserve))};
  }
  return problem;
}

std::string textOf(const Problem& problem, const std::vector<Pipeline>& pipelines) {
  std::string text;
  for (const Pipeline& pipeline : pipelines) {
    text += fmt::format("{} in {}:", pipeline.localBatch, pipeline.microBatch);
    for (const Stage& stage : pipeline.stages) {
      text += fmt::format(" {}x{} [{}, {})", stage.tp, stage.dp, stage.units.first, stage.units.last);
      for (const DeviceId device : stage.devices) text += " " + problem.cluster.nameOf(device);
      for (const Recompute& recompute : stage.recompute)
        text += fmt::format(" {} ops of [{}, {})", recompute.ops.size(), recompute.units.first, recompute.units.last);
      text += ";";
    }
    text += " | ";
  }
  return text;
}

TEST(Optimal, EqualsEveryPlanOfTinyClustersByTheClosedFormAndIsNearTheirBestAsReported) {
  constexpr double kNear = 0.995;
  int feasible = 0;
  double worstClosedForm = 1, worstReported = 1;
  std::vector<std::uint64_t> indices = sweepIndices(8, 300);
  if (!isFullRun() && !isSharded()) {
    // 29: a smaller last micro-batch is among those that a stage holds, and lets it recompute less. 45: unlike tp, so that weights
    // are held twice.
    indices.insert(indices.end(), {29, 45});
  }
  for (const std::uint64_t i : indices) {
    const Problem problem = tinyProblem(i);
    Oracle oracle(problem);
    const auto plan = planWith("optimal", problem);
    if (!plan) {
      ASSERT_EQ(plan.error().code, Error::Code::Infeasible) << i << ": " << plan.error().text();
      EXPECT_FALSE(oracle.fasterThan({1e9}, Oracle::Measure::Reported)) << i << ": there is a plan";
      continue;
    }
    ++feasible;
    const Seconds ours{plan->search.at("closed_form_ms").get<double>() / 1e3};
    if (const auto better = oracle.fasterThan((1 - 1e-6) * ours, Oracle::Measure::ClosedForm)) {
      worstClosedForm = std::max(worstClosedForm, ours / better->time);
      ADD_FAILURE() << "problem " << i << ": by the closed form there is a plan that is faster by a factor of " << ours / better->time
                    << ": " << textOf(problem, better->pipelines);
    }
    const auto better = oracle.fasterThan(kNear * plan->predicted->iteration, Oracle::Measure::Reported);
    if (better) {
      worstReported = std::max(worstReported, plan->predicted->iteration / better->time);
      ADD_FAILURE() << "problem " << i << ": there is a plan that is faster by a factor of " << plan->predicted->iteration / better->time
                    << ": " << textOf(problem, better->pipelines) << "\nours: " << textOf(problem, plan->pipelines);
      EXPECT_LE(plan->predicted->lowerBound, better->time) << i;
    }
  }
  std::cout << feasible << " of " << indices.size() << " feasible; at worst " << worstClosedForm << " of the best by the closed form, "
            << worstReported << " as reported\n";
  if (!isSharded()) {
    EXPECT_GT(2 * feasible, static_cast<int>(indices.size()));
  }
}

// Two pipelines whose sync decides, found only after the sync of some 100,000 others is known: without them it is 2.6 % slower.
TEST(Optimal, FindsThePairOfPipelinesThatItsSyncMakesTheBest) {
  const auto plan = planWith("optimal", tinyProblem(79));
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_LT(plan->predicted->iteration.value, 0.1015);
}

}  // namespace
}  // namespace evenkeel
