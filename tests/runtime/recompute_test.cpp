// SPDX-License-Identifier: GPL-3.0-or-later
// Recomputing any set of ops changes no bit of loss and gradients, and gives back the memory that the cost model counts with.
// Megatron-LM #2281, DeepSpeed #6793: recomputation that silently keeps what it should drop.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/random.h"
#include "runtime/device/memory_meter.h"
#include "runtime/nn/stage_model.h"
#include "tests/runtime/unit_runs.h"
#include "tests/support/plans.h"

namespace evenkeel {
namespace {

constexpr std::int64_t kBatch = 4, kSequence = 64, kHidden = 64;

Model model() {
  Model model = *modelFromArgument("tiny-gpt");
  model.layers = 3;
  model.hidden = kHidden;
  model.heads = model.kvHeads = 4;
  model.headDim = 16;
  model.ffn = 256;
  model.vocab = 200;
  model.context = kSequence;
  return model;
}

/// Forward and backward of a whole model whose stage recomputes these ops in all units.
struct Outcome {
  double loss = 0;
  at::Tensor gradients;
  std::int64_t savedBytes = 0;  // between forward and backward
};

Outcome trainWith(const std::vector<Recompute>& recompute) {
  Plan plan = planOf(*parseClusterShorthand("1x1:cpu"), model(), {{1, 1, {"cpu-0/0"}, {0, 8}}});
  plan.pipelines[0].stages[0].recompute = recompute;
  Parameters parameters(blockMap(plan), 0, 0, 1);
  const StageModel stage(plan.model, plan.pipelines[0].stages[0], parameters, oneShard());
  const at::Tensor tokens_BS = at::arange(kBatch * kSequence, at::kLong).remainder(200).view({kBatch, kSequence});
  const Batch batch{.targets_BS = 199 - tokens_BS};
  Outcome outcome;
  const Bytes before = tensorBytes();
  const at::Tensor loss = stage.forward(tokens_BS, batch);
  outcome.savedBytes = (tensorBytes() - before).value;
  loss.backward();
  outcome.loss = loss.item<double>();
  outcome.gradients = parameters.ownGradients().clone();
  return outcome;
}

std::vector<Op> opsOfLayer() {
  std::vector<Op> ops;
  for (const UnitKind kind : {UnitKind::Attention, UnitKind::Mlp}) {
    for (const Op op : opsOf(kind)) ops.push_back(op);
  }
  return ops;
}

class Recomputation : public ::testing::Test {
 protected:
  void SetUp() override { meterTensors(); }
};

TEST_F(Recomputation, ChangesNoBitOfTheGradient) {
  const Outcome plain = trainWith({});
  ASSERT_GT(plain.gradients.abs().sum().item<double>(), 0.0);
  const CounterRandom random(7, "recomputed ops");
  for (std::uint64_t i = 0; i < 24; ++i) {
    std::vector<Op> ops;
    for (int op = 0; op < kOpCount; ++op) {
      if (i == 0 || random.below(i * kOpCount + static_cast<std::uint64_t>(op), 2) == 1) ops.push_back(static_cast<Op>(op));
    }
    const Outcome outcome = trainWith({{{0, 8}, ops}});
    EXPECT_EQ(outcome.loss, plain.loss) << i;
    EXPECT_TRUE(outcome.gradients.equal(plain.gradients)) << i;
  }
}

/// Activations of B x S x H floats.
double inResiduals(std::int64_t bytes) {
  return static_cast<double>(bytes) / static_cast<double>(kBatch * kSequence * kHidden * 4);
}

TEST_F(Recomputation, KeepsOnlyTheInputsOfRuns) {
  const auto savedByLayer = [&](const std::vector<Op>& ops) {
    const std::int64_t all = trainWith({}).savedBytes, less = trainWith({{{1, 7}, ops}}).savedBytes;
    return inResiduals(all - less) / 3;  // layers
  };
  EXPECT_NEAR(savedByLayer({Op::Fc1, Op::Activation}), 4.0, 0.1) << "the input of GELU, 4 H; the output stays for fc2";
  EXPECT_NEAR(savedByLayer({Op::Score, Op::Softmax}), 0.0, 0.1) << "context needs what softmax keeps too";
  EXPECT_NEAR(savedByLayer({Op::Score, Op::Softmax, Op::AttentionDropout, Op::Context}), 4.0, 0.1) << "A S / H of softmax";
  EXPECT_NEAR(savedByLayer({Op::Fc2}), 0.0, 0.1);
  const double layer = inResiduals(trainWith({}).savedBytes - trainWith({{{1, 7}, opsOfLayer()}}).savedBytes) / 3;
  EXPECT_GT(layer, 15.0);
  const std::int64_t whole = trainWith({{{0, 8},
                                         [] {
                                           std::vector<Op> ops;
                                           for (int op = 0; op < kOpCount; ++op) ops.push_back(static_cast<Op>(op));
                                           return ops;
                                         }()}})
                                 .savedBytes;
  EXPECT_NEAR(inResiduals(whole), 7.0, 0.2) << "the input of each unit after the embedding";
}

TEST_F(Recomputation, HoldsOneUnitAtATimeAtItsPeak) {
  const auto peakWith = [&](const std::vector<Recompute>& recompute) {
    const Bytes before = tensorBytes();
    resetPeakTensorBytes();
    (void)trainWith(recompute);
    return inResiduals((peakTensorBytes() - before).value);
  };
  const double plain = peakWith({}), all = peakWith({{{1, 7}, opsOfLayer()}}), one = peakWith({{{1, 2}, opsOfLayer()}});
  EXPECT_LT(all, plain - 20) << "two of three layers are never there at once";
  EXPECT_LT(one, plain);
  EXPECT_GT(one, all);
}

}  // namespace
}  // namespace evenkeel
