// SPDX-License-Identifier: GPL-3.0-or-later
// The bound of `optimal` holds for every plan, and its plan is the best of many.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "core/cost/evaluate.h"
#include "core/search/limits.h"
#include "tests/core/search/problems.h"
#include "tests/core/search/shard.h"

namespace evenkeel {
namespace {

/// Random numbers in the order in which they are asked for.
class Dice {
 public:
  Dice(std::uint64_t seed, std::string_view stream) : random_(seed, stream) {}
  int below(int bound) { return static_cast<int>(random_.below(at_++, static_cast<std::uint64_t>(bound))); }
  double uniform() { return random_.uniform(at_++); }

 private:
  CounterRandom random_;
  std::uint64_t at_ = 0;
};

/// One to three kinds of nodes, mixed nodes among them, up to `mostDevices` devices.
Problem randomProblem(std::uint64_t index, int mostDevices, const std::vector<std::string>& models) {
  Dice dice(index, "optimal problems");
  const std::vector<std::string> types = {"A100-80-SXM", "V100-32-SXM2", "Ascend-910B2", "Ascend-910B4", "RTX4090"};
  std::string text;
  int devices = 0;
  for (int part = 0, parts = 1 + dice.below(3); part < parts && devices < mostDevices; ++part) {
    const int perNode = 1 + dice.below(std::min(8, mostDevices - devices));
    const int nodes = 1 + dice.below(std::max(1, (mostDevices - devices) / perNode / 2));
    devices += nodes * perNode;
    text += fmt::format("{}{}x{}:{}", part > 0 ? "," : "", nodes, perNode, types[static_cast<std::size_t>(dice.below(4))]);
  }
  Cluster cluster = *parseClusterShorthand(text);
  for (Node& node : cluster.nodes) {
    node.nic.bandwidth = (0.1 + dice.uniform()) * node.nic.bandwidth;
    node.nicPerDevice = dice.below(2) == 0;
    if (dice.below(4) == 0) node.devices.front().type = dice.below(static_cast<int>(cluster.deviceTypes.size()));
  }
  Model model = *modelFromArgument(models[static_cast<std::size_t>(dice.below(static_cast<int>(models.size())))]);
  model.layers = std::min(model.layers, 2 + dice.below(8));
  const std::vector<std::int64_t> batches = {1, 2, 7, 13, 32, 61, 128};
  return problemOf(std::move(cluster), std::move(model), batches[static_cast<std::size_t>(dice.below(7))]);
}

/// Any valid shape: replicas of unlike types, unlike shares, any tp that divides, any ops recomputed. Memory is not looked at.
std::vector<Pipeline> randomPlan(const Problem& problem, Dice& dice) {
  const Cluster& cluster = problem.cluster;
  const Model& model = problem.model;
  const int count = model.unitCount();
  std::vector<int> tps;
  for (int tp = 1; tp <= 8; ++tp) {
    if (model.heads % tp == 0 && (model.kvHeads % tp == 0 || tp % model.kvHeads == 0) && model.ffn % tp == 0 &&
        model.paddedVocab() % tp == 0)
      tps.push_back(tp);
  }
  const int usualTp = tps[static_cast<std::size_t>(dice.below(static_cast<int>(tps.size())))];
  std::map<int, std::vector<std::vector<DeviceId>>> groups;  // by tp
  std::map<std::pair<int, int>, std::vector<DeviceId>> open;
  for (const DeviceId device : limitsOf(problem).devices) open[{device.node, cluster.typeIndexOf(device)}].push_back(device);
  for (auto& [where, devices] : open) {
    while (!devices.empty()) {
      int tp = dice.below(5) > 0 ? usualTp : tps[static_cast<std::size_t>(dice.below(static_cast<int>(tps.size())))];
      if (tp > static_cast<int>(devices.size())) tp = 1;
      groups[tp].emplace_back(devices.end() - tp, devices.end());
      devices.resize(devices.size() - static_cast<std::size_t>(tp));
    }
  }
  // Stages, then pipelines of them.
  std::vector<Stage> stages;
  const int mostDp = 1 + dice.below(4);
  for (auto& [tp, all] : groups) {
    for (std::size_t i = all.size(); i > 1; --i)
      std::swap(all[i - 1], all[static_cast<std::size_t>(dice.below(static_cast<int>(i)))]);
    while (!all.empty()) {
      Stage& stage = stages.emplace_back();
      stage.tp = tp;
      stage.dp = 1 + dice.below(std::min(mostDp, static_cast<int>(all.size())));
      for (int r = 0; r < stage.dp; ++r) {
        stage.devices.insert(stage.devices.end(), all.back().begin(), all.back().end());
        all.pop_back();
      }
    }
  }
  for (std::size_t i = stages.size(); i > 1; --i)
    std::swap(stages[i - 1], stages[static_cast<std::size_t>(dice.below(static_cast<int>(i)))]);
  const int perPipeline = 1 + dice.below(std::min(count, static_cast<int>(stages.size())));
  std::vector<Pipeline> pipelines;
  for (std::size_t first = 0; first + static_cast<std::size_t>(perPipeline) <= stages.size();
       first += static_cast<std::size_t>(perPipeline)) {
    if (static_cast<std::int64_t>(pipelines.size()) >= problem.training.globalBatch) break;
    Pipeline& pipeline = pipelines.emplace_back();
    pipeline.stages.assign(stages.begin() + static_cast<std::ptrdiff_t>(first),
                           stages.begin() + static_cast<std::ptrdiff_t>(first) + perPipeline);
  }
  const auto parts = static_cast<std::int64_t>(pipelines.size());
  std::int64_t left = problem.training.globalBatch;
  for (std::int64_t p = 0; p < parts; ++p) {
    Pipeline& pipeline = pipelines[static_cast<std::size_t>(p)];
    const std::int64_t even = left / (parts - p);
    pipeline.localBatch = p + 1 == parts ? left : std::clamp<std::int64_t>(even + dice.below(3) - 1, 1, left - (parts - p - 1));
    left -= pipeline.localBatch;
    pipeline.microBatch = 1 + dice.below(static_cast<int>(std::min<std::int64_t>(pipeline.localBatch, 1 + dice.below(16))));
    int unit = 0;
    const int stageCount = static_cast<int>(pipeline.stages.size());
    for (int s = 0; s < stageCount; ++s) {
      Stage& stage = pipeline.stages[static_cast<std::size_t>(s)];
      const int most = count - unit - (stageCount - s - 1);
      const int evenUnits = std::clamp((count - unit) / (stageCount - s) + dice.below(3) - 1, 1, most);
      stage.units = {unit, s + 1 == stageCount ? count : unit + evenUnits};
      unit = stage.units.last;
      if (stage.dp > 1 && dice.below(2) == 0) {
        stage.shares.assign(static_cast<std::size_t>(stage.dp), 0);
        for (int sample = 0; sample < pipeline.microBatch; ++sample)
          ++stage.shares[static_cast<std::size_t>(dice.below(stage.dp))];
      }
      if (dice.below(2) == 0) {
        Recompute recompute{stage.units, {}};
        for (int op = 0; op < kOpCount; ++op) {
          if (dice.below(3) == 0) recompute.ops.push_back(static_cast<Op>(op));
        }
        if (!recompute.ops.empty()) stage.recompute.push_back(recompute);
      }
    }
  }
  return pipelines;
}

/// One to three moves from a plan: samples of a micro-batch or of a pipeline, units of a stage, ops that are recomputed. It may not fit, or
/// lose its shape.
std::vector<Pipeline> movedPlan(std::vector<Pipeline> pipelines, Dice& dice) {
  const auto any = [&](auto& list) -> auto& { return list[static_cast<std::size_t>(dice.below(static_cast<int>(list.size())))]; };
  for (int moves = 1 + dice.below(3); moves > 0; --moves) {
    Pipeline& pipeline = any(pipelines);
    switch (dice.below(4)) {
      case 0:
        pipeline.microBatch = std::max(1, pipeline.microBatch + dice.below(5) - 2);
        for (Stage& stage : pipeline.stages) stage.shares.clear();
        break;
      case 1: {
        const int samples = dice.below(4);
        pipeline.localBatch += samples;
        any(pipelines).localBatch -= samples;
        break;
      }
      case 2: {
        if (pipeline.stages.size() < 2) break;
        const auto s = static_cast<std::size_t>(dice.below(static_cast<int>(pipeline.stages.size()) - 1));
        pipeline.stages[s].units.last = pipeline.stages[s + 1].units.first += dice.below(2) == 0 ? 1 : -1;
        for (Stage& stage : pipeline.stages) stage.recompute.clear();
        break;
      }
      default: {
        Stage& stage = any(pipeline.stages);
        stage.recompute.clear();
        if (dice.below(2) == 0) stage.recompute = {{stage.units, {static_cast<Op>(dice.below(kOpCount))}}};
      }
    }
  }
  return pipelines;
}

/// Sharded state, ways of sync, drawn connections, and switches, some of which limit what passes them in total.
void vary(Problem& problem, Dice& dice) {
  problem.training.zeroStage = dice.below(3);
  const std::array syncs = {GradientSync::Block, GradientSync::Tensor, GradientSync::Device};
  problem.training.gradientSync = syncs[static_cast<std::size_t>(dice.below(problem.training.zeroStage == 0 ? 3 : 2))];
  Cluster& cluster = problem.cluster;
  const auto nodes = static_cast<int>(cluster.nodes.size());
  if (nodes > 1 && dice.below(4) == 0) cluster.links.push_back({0, 1 + dice.below(nodes - 1), {fromGbs(1 + dice.below(100)), fromMicroseconds(dice.below(40))}});
  const int leaves = dice.below(3);  // 1: one switch over all nodes
  if (leaves == 0) return;
  const auto drawn = [&](std::string name) {
    return Switch{.name = std::move(name),
                  .members = {},
                  .bandwidth = fromGbs(5 + dice.below(40)),
                  .total = dice.below(2) == 0 ? BytesPerSecond{} : fromGbs(3 + dice.below(60)),
                  .latency = fromMicroseconds(dice.below(5))};
  };
  for (int leaf = 0; leaf < leaves; ++leaf) {
    Switch& one = cluster.switches.emplace_back(drawn(fmt::format("leaf-{}", leaf)));
    for (int n = leaf; n < nodes; n += leaves) one.members.push_back(cluster.nodes[static_cast<std::size_t>(n)].name);
    if (one.members.empty()) cluster.switches.pop_back();
  }
  if (cluster.switches.size() < 2) return;
  Switch spine = drawn("spine");
  for (const Switch& leaf : cluster.switches) spine.members.push_back(leaf.name);
  cluster.switches.push_back(std::move(spine));
}

// optimal.md 6.1: one wrong `break` made a bound invalid. The bound speaks of every valid plan, whoever made it.
/// Where sync or sends rule, a lucky placement of a random plan may win: at most one problem in a hundred, by at most 10 %.
TEST(Optimal, ProvesNoBoundThatAnyPlanBeatsAndIsHardlyEverSlowerThanARandomOne) {
  constexpr int kDevicesForMetis = 12;  // it takes its time
  int plans = 0, moved = 0, planned = 0, problems = 0;
  std::set<std::uint64_t> beaten;
  double closest = 1e9, worst = 1;
  const std::vector<std::uint64_t> indices = sweepIndices(6, 500);
  for (const std::uint64_t i : indices) {
    Problem problem = randomProblem(i, isFullRun() ? 64 : 24, {"gpt3-350m", "gpt3-2.7b", "llama2-7b", "gpt3-13b"});
    Dice dice(i, "random plans");
    if (i % 4 != 0) vary(problem, dice);
    const auto plan = planWith("optimal", problem);
    if (!plan) {
      ASSERT_EQ(plan.error().code, Error::Code::Infeasible) << i << ": " << plan.error().text();
      continue;
    }
    ++problems;
    ASSERT_LE(plan->predicted->lowerBound, plan->predicted->iteration) << "problem " << i;
    ASSERT_GE(plan->search.at("closed_form_gap").get<double>(), -1e-9) << "problem " << i;
    const AnalyticProfile profile(problem.model, problem.training);
    const CostModel model(problem.cluster, problem.model, problem.training, profile);
    const auto note = [&](Seconds time, const std::string& whose) {
      if (time < plan->predicted->iteration * (1 - 1e-9)) {
        beaten.insert(i);
        worst = std::max(worst, plan->predicted->iteration / time);
        std::cout << "problem " << i << ", " << whose << " is faster: " << plan->predicted->iteration / time << '\n';
      }
      closest = std::min(closest, time / plan->predicted->lowerBound);
    };
    std::vector<std::vector<Pipeline>> good = {plan->pipelines};
    for (const Planner& planner : planners()) {
      if (planner.name == "optimal" || (planner.name == "metis" && problem.cluster.deviceCount() > kDevicesForMetis)) continue;
      const auto other = planWith(planner.name, problem);
      if (!other) continue;
      ++planned;
      ASSERT_GE(other->predicted->iteration, plan->predicted->lowerBound) << "problem " << i << ", " << planner.name;
      note(other->predicted->iteration, planner.name);
      if (planner.name == "eth" || planner.name == "uniform") {
        EXPECT_LE(plan->predicted->iteration.value, other->predicted->iteration.value * (1 + 1e-9)) << "problem " << i << ", " << planner.name;
      }
      good.push_back(other->pipelines);
    }
    for (int attempt = 0; attempt < sweep(300, 4000); ++attempt) {
      Plan other = *plan;
      const bool isMoved = attempt % 2 == 1;
      other.pipelines = isMoved ? movedPlan(good[static_cast<std::size_t>(attempt) / 2 % good.size()], dice) : randomPlan(problem, dice);
      const Evaluation evaluation = evaluate(model, other, {}, false);
      if (!evaluation.valid()) continue;
      ++(isMoved ? moved : plans);
      const Seconds time = evaluation.plan.predicted->iteration;
      ASSERT_GE(time, plan->predicted->lowerBound) << "problem " << i << ", plan " << attempt;
      note(time, fmt::format("{} plan {}", isMoved ? "moved" : "random", attempt));
    }
  }
  std::cout << plans << " random, " << moved << " moved and " << planned << " planners' plans that are valid, of " << problems
            << " problems; the nearest is at " << closest << " of its bound; " << beaten.size() << " beat optimal, at most by " << worst << '\n';
  if (isSharded()) return;  // a few problems say nothing of how often
  EXPECT_LE(100 * static_cast<int>(beaten.size()), problems) << "at worst by a factor of " << worst;
  EXPECT_LE(worst, 1.1);
  EXPECT_GT(plans, 100);
  EXPECT_GT(moved, 100);
  EXPECT_GT(planned, problems);
}

// 4 V100 and then one more behind 1 GB/s: 537 ms became 681 ms, because all planners used it.
TEST(Optimal, DoesNotGetSlowerWhenADeviceIsAddedThatIsHardToReach) {
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(sweep(4, 60)); ++i) {
    Dice dice(i, "added devices");
    const std::vector<std::string> types = {"A100-80-SXM", "V100-32-SXM2", "Ascend-910B4"};
    const auto type = [&] { return types[static_cast<std::size_t>(dice.below(3))]; };
    const std::string before = fmt::format("1x{}:{}", 2 + dice.below(4), type());
    const auto planOn = [&](const std::string& text) {
      Problem problem = problemOf(text, "gpt3-350m", 16);
      problem.training.precision = Precision::Fp16;
      for (Node& node : problem.cluster.nodes) node.nic.bandwidth = fromGbs(1);
      return planWith("optimal", problem);
    };
    const auto few = planOn(before), more = planOn(fmt::format("{},1x1:{}", before, type()));
    ASSERT_TRUE(few && more);
    EXPECT_LE(more->predicted->iteration.value, few->predicted->iteration.value * (1 + 1e-9)) << before << ", " << i;
  }
}

// Batches of a few samples, where what is fast by its own measure is not what is fastest: 54.0 ms became 57.4 ms with one V100
// more, 923 ms became 952 ms with one 910B4 more.
TEST(Optimal, DoesNotGetSlowerWhenADeviceIsAddedToANode) {
  struct Growth {
    const char* before;
    const char* after;
    const char* model;
    std::int64_t batch, sequence;
  };
  for (const Growth& growth :
       {Growth{"1x3:V100-32-SXM2,1x3:H100-80-SXM,1x4:H100-80-SXM", "1x4:V100-32-SXM2,1x3:H100-80-SXM,1x4:H100-80-SXM",
               "gpt3-1.3b", 3, 1024},
        Growth{"1x3:A100-80-SXM,1x3:Ascend-910B4", "1x3:A100-80-SXM,1x4:Ascend-910B4", "gpt3-1.3b", 32, 2048},
        Growth{"1x1:H100-80-SXM,1x1:H100-80-SXM", "1x1:H100-80-SXM,1x1:H100-80-SXM,1x1:Ascend-910B4", "gpt3-1.3b", 7, 1024}}) {
    const auto planOn = [&](const char* text) {
      Problem problem = problemOf(text, growth.model, growth.batch);
      problem.training.precision = Precision::Fp16;
      problem.training.sequenceLength = growth.sequence;
      return planWith("optimal", problem);
    };
    const auto few = planOn(growth.before), more = planOn(growth.after);
    ASSERT_TRUE(few && more);
    EXPECT_LE(more->predicted->iteration.value, few->predicted->iteration.value * (1 + 1e-9)) << growth.after;
  }
}

// With few pipelines its columns assumed fewer holders than the plan had: eth won by 0.6 % on 256 devices.
TEST(Optimal, IsNotBeatenByEthOrUniformWhereTheyAreNotAsked) {
  std::vector<std::pair<const char*, const char*>> problems = {{"9x8:Ascend-910B2,3x8:Ascend-910B4", "gpt3-13b"}};
  if (isFullRun()) problems.emplace_back("16x8:Ascend-910B2,16x8:Ascend-910B4", "gpt3-175b");
  for (const auto& [cluster, model] : problems) {
    const Problem problem = problemOf(cluster, model, 1024);
    const auto ours = planWith("optimal", problem);
    ASSERT_TRUE(ours) << ours.error().text();
    for (const char* planner : {"eth", "uniform"}) {
      const auto other = planWith(planner, problem);
      ASSERT_TRUE(other) << other.error().text();
      EXPECT_LE(ours->predicted->iteration, other->predicted->iteration) << planner << " on " << cluster;
    }
  }
}

// Counts that break others (issue 5).
TEST(Optimal, PlansCountsThatBreakOthers) {
  const auto expectValid = [](const Problem& problem, const std::string& what) {
    const auto plan = planWith("optimal", problem);
    ASSERT_TRUE(plan) << what << ": " << plan.error().text();
    const Evaluation evaluation = evaluate(*plan, AnalyticProfile(plan->model, plan->training), false);
    ASSERT_TRUE(evaluation.valid()) << what << ": " << evaluation.violations.front().what;
    ASSERT_LE(plan->predicted->lowerBound, plan->predicted->iteration) << what;
  };
  for (const int devices : {1, 2, 3, 5, 6, 7, 12}) {
    expectValid(problemOf(fmt::format("1x{}:A100-80-SXM", devices), "gpt3-1.3b", 32), fmt::format("{} devices", devices));
  }
  for (const char* cluster : {"1x2:A100-80-SXM,1x4:A100-80-SXM,1x2:A100-80-SXM", "1x6:A100-80-SXM,1x2:V100-32-SXM2"})
    expectValid(problemOf(cluster, "gpt3-2.7b", 32), cluster);
  for (const int layers : {43, 61, 78}) {
    Model model = *modelFromArgument("gpt3-2.7b");
    model.layers = layers;
    expectValid(problemOf(*parseClusterShorthand("2x8:A100-80-SXM"), model, 32), fmt::format("{} layers", layers));
  }
  for (const std::int64_t batch : {1, 7, 100, 1021})
    expectValid(problemOf("1x4:A100-80-SXM,1x4:V100-32-SXM2", "gpt3-1.3b", batch), fmt::format("batch {}", batch));
  Problem mixed = problemOf("1x8:A100-80-SXM,1x2:V100-32-SXM2", "gpt3-2.7b", 32);
  mixed.cluster.nodes.front().devices.back().type = 1;
  expectValid(mixed, "a node with two types");
  expectValid(problemOf("1x4:A100-80-SXM,1x1:T4", "gpt3-6.7b", 32), "a type too small to hold anything");
}

}  // namespace
}  // namespace evenkeel
