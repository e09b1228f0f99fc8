// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/runtime/random_plans.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/random.h"
#include "core/plan/violations.h"
#include "tests/support/plans.h"

namespace evenkeel {
namespace {

constexpr int kDevices = 12;

class Dice {
 public:
  Dice(std::uint64_t seed, std::string_view stream) : random_(seed, stream) {}
  /// From least to most, both included.
  int between(int least, int most) {
    return least + static_cast<int>(random_.below(next_++, static_cast<std::uint64_t>(most - least + 1)));
  }
  bool heads() { return between(0, 1) == 1; }
  template <class T>
  T oneOf(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(between(0, static_cast<int>(list.size()) - 1))];
  }
  template <class T>
  void shuffle(std::vector<T>& list) {
    for (std::size_t i = list.size(); i > 1; --i)
      std::swap(list[i - 1], list[static_cast<std::size_t>(between(0, static_cast<int>(i) - 1))]);
  }
  /// `parts` numbers that sum to `total`, each at least `least`.
  std::vector<int> split(int total, int parts, int least) {
    std::vector<int> sizes(static_cast<std::size_t>(parts), least);
    for (int rest = total - parts * least; rest > 0; --rest) ++sizes[static_cast<std::size_t>(between(0, parts - 1))];
    return sizes;
  }

 private:
  CounterRandom random_;
  std::uint64_t next_ = 0;
};

Stage randomStage(Dice& dice, const Model& model, UnitRange units, std::vector<DeviceId>& devices, int most, int microBatch) {
  Stage stage;
  stage.units = units;
  do {
    stage.tp = dice.oneOf<int>({1, 1, 2, 3, 4});
    stage.dp = dice.oneOf<int>({1, 1, 2, 3});
  } while (stage.tp * stage.dp > most || (model.kvHeads % stage.tp != 0 && stage.tp % model.kvHeads != 0));
  stage.devices.assign(devices.end() - stage.tp * stage.dp, devices.end());
  devices.resize(devices.size() - stage.devices.size());
  if (dice.heads()) stage.shares = dice.split(microBatch, stage.dp, 0);
  for (int count = dice.between(0, 2); count > 0; --count) {
    const int first = dice.between(units.first, units.last - 1), last = dice.between(first + 1, units.last);
    Recompute recompute{{first, last}, {}};
    for (int op = 0; op < kOpCount; ++op) {
      if (dice.heads()) recompute.ops.push_back(static_cast<Op>(op));
    }
    stage.recompute.push_back(std::move(recompute));
  }
  return stage;
}

}  // namespace

Model randomModel(std::uint64_t seed) {
  Dice dice(seed, "model");
  Model model = *modelFromArgument("tiny-gpt");
  model.name = "random";
  model.layers = 2;
  model.hidden = 32;
  model.heads = 12;
  model.kvHeads = dice.oneOf<int>({12, 6, 3, 2, 1});
  model.headDim = 4;
  model.ffn = 48;
  model.vocab = 200;
  model.vocabMultiple = 192;  // 384 rows: tp 3 and 4 divide them, and tp 4 has a shard without a real one
  model.context = 20;
  model.tiedEmbeddings = dice.heads();
  model.bias = dice.between(0, 3) > 0;
  if (dice.heads()) {
    model.norm = Norm::RmsNorm;
    model.position = Position::Rotary;
    model.gated = true;
    model.bias = false;
  }
  return model;
}

Plan randomPlan(std::uint64_t seed, const Model& model, std::int64_t globalBatch) {
  Dice dice(seed, "plan");
  Plan plan;
  plan.cluster = *parseClusterShorthand("1x12:cpu");
  plan.model = model;
  plan.training = resolveTraining({.globalBatch = globalBatch}, plan.cluster, model);
  plan.training.sequenceLength = 16;
  plan.training.zeroStage = dice.between(0, 2);
  plan.training.gradientSync = plan.training.zeroStage > 0
                                   ? dice.oneOf<GradientSync>({GradientSync::Block, GradientSync::Tensor})
                                   : dice.oneOf<GradientSync>({GradientSync::Block, GradientSync::Tensor, GradientSync::Device});
  std::vector<DeviceId> devices = plan.cluster.devices();
  dice.shuffle(devices);
  std::vector<int> batches = dice.split(static_cast<int>(globalBatch), dice.between(1, 3), 1);
  int stagesLeft = 0;
  std::vector<int> stageCounts;
  for (std::size_t p = 0; p < batches.size(); ++p) stageCounts.push_back(dice.between(1, 4));
  for (const int count : stageCounts) stagesLeft += count;
  for (std::size_t p = 0; p < batches.size(); ++p) {
    Pipeline pipeline;
    pipeline.localBatch = batches[p];
    pipeline.microBatch = dice.between(1, std::min(batches[p], 5));
    int unit = 0;
    for (const int size : dice.split(model.unitCount(), stageCounts[p], 1)) {
      const int most = static_cast<int>(devices.size()) - --stagesLeft;
      pipeline.stages.push_back(randomStage(dice, model, {unit, unit + size}, devices, most, pipeline.microBatch));
      unit += size;
    }
    plan.pipelines.push_back(std::move(pipeline));
  }
  EXPECT_EQ(shapeViolations(plan).size(), 0U) << "seed " << seed;
  return plan;
}

Plan planOfOneDevice(const Plan& plan) {
  Plan one = plan;
  Stage stage{.devices = {plan.cluster.devices().front()}, .units = {0, plan.model.unitCount()}};
  one.pipelines = {{.localBatch = plan.training.globalBatch,
                    .microBatch = static_cast<int>(plan.training.globalBatch),
                    .stages = {std::move(stage)}}};
  return one;
}

}  // namespace evenkeel
