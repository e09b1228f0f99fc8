// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/profile/op_work.h"

#include <gtest/gtest.h>

namespace evenkeel {
namespace {

Training trainingOf(const Model& model, Precision precision = Precision::Fp16) {
  return {.sequenceLength = model.context, .globalBatch = 8, .precision = precision};
}

std::int64_t savedOfLayer(const Model& model, const Training& training, int tp, std::int64_t samples) {
  std::int64_t sum = 0;
  for (const UnitKind kind : {UnitKind::Attention, UnitKind::Mlp}) {
    for (const Op op : opsOf(kind)) sum += opWork(model, training, op, tp, samples).saved.value;
  }
  return sum;
}

// Korthikanti et al. 2022, equations 1 and 2.
TEST(OpWork, SavesWhatKorthikantiCountsForAGptLayer) {
  const Model model = *modelFromArgument("gpt3-13b");
  const std::int64_t s = model.context, b = 3, h = model.hidden, a = model.heads;
  EXPECT_EQ(savedOfLayer(model, trainingOf(model), 1, b), s * b * (34 * h + 5 * a * s));
  EXPECT_EQ(savedOfLayer(model, trainingOf(model), 4, b), s * b * (10 * h + 24 * h / 4 + 5 * a * s / 4));
}

// Korthikanti et al. 2022, equation 4.
TEST(OpWork, DividesAllThatALayerSavesWithSequenceParallelism) {
  const Model model = *modelFromArgument("gpt3-13b");
  Training training = trainingOf(model);
  training.sequenceParallel = true;
  const std::int64_t s = model.context, h = model.hidden, a = model.heads;
  EXPECT_EQ(savedOfLayer(model, training, 4, 1), s * (34 * h + 5 * a * s) / 4);
  EXPECT_EQ(savedOfLayer(model, training, 1, 1), savedOfLayer(model, trainingOf(model), 1, 1));
}

TEST(OpWork, SavesTwiceTheNumbersButTheSameMasksInFp32) {
  const Model model = *modelFromArgument("gpt3-13b");
  const std::int64_t s = model.context, h = model.hidden, a = model.heads;
  EXPECT_EQ(savedOfLayer(model, trainingOf(model, Precision::Fp32), 1, 1), s * (2 * 32 * h + 2 * h + 2 * 4 * a * s + a * s));
}

// Megatron-LM #525: computed 23 GB, out of memory at 32 (s^2 term; field-faults).
TEST(OpWork, SavesNothingQuadraticInTheSequenceWithTheFusedKernelOnly) {
  Model model = *modelFromArgument("gpt3-13b");
  model.context = 8192;
  Training training = trainingOf(model);
  const auto growth = [&] {
    training.sequenceLength = 4096;
    const double half = static_cast<double>(savedOfLayer(model, training, 1, 1));
    training.sequenceLength = 8192;
    return static_cast<double>(savedOfLayer(model, training, 1, 1)) / half;
  };
  EXPECT_GT(growth(), 3.0);
  training.attention = AttentionKernel::Fused;
  EXPECT_DOUBLE_EQ(growth(), 2.0);
}

// vllm-fit #20, LLM-Viewer #12: gated MLP counted as two matrices, GQA ignored (field-faults).
TEST(OpWork, HoldsTheParametersThatTheModelHas) {
  for (const Model& model : modelCatalogue()) {
    for (int unit = 0; unit < 3; ++unit) {
      std::int64_t sum = 0;
      for (const Op op : opsOf(model.unitKind(unit))) sum += opWork(model, trainingOf(model), op, 1, 1).parameters;
      EXPECT_EQ(sum, storedParameters(model, unit, unit + 1)) << model.name << " unit " << unit;
    }
    std::int64_t head = 0;
    for (const Op op : opsOf(UnitKind::Head)) head += opWork(model, trainingOf(model), op, 1, 1).parameters;
    EXPECT_EQ(head, storedParameters(model, model.unitCount() - 1, model.unitCount())) << model.name;
  }
}

TEST(OpWork, NeedsAboutSixFlopsAParameterAndToken) {
  const Model model = *modelFromArgument("gpt3-175b");
  const double perToken = flopsPerSample(model, trainingOf(model)).value / static_cast<double>(model.context);
  EXPECT_NEAR(perToken / (6.0 * static_cast<double>(parameterCount(model))), 1.03, 0.02);  // + attention, s / (6 h)
}

}  // namespace
}  // namespace evenkeel
