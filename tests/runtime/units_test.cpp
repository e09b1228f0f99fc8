// SPDX-License-Identifier: GPL-3.0-or-later
// The units against loops over plain numbers, and their gradients against finite differences, in double precision.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "core/base/random.h"
#include "runtime/nn/stage_model.h"
#include "tests/runtime/unit_runs.h"
#include "tests/support/plans.h"

namespace evenkeel {
namespace {

at::Tensor randomTensor(at::IntArrayRef shape, const std::string& name, double scale = 0.5) {
  at::Tensor tensor = at::empty(shape, at::kDouble);
  const CounterRandom random(1, name);
  for (std::int64_t i = 0; i < tensor.numel(); ++i)
    tensor.data_ptr<double>()[i] = scale * random.normal(static_cast<std::uint64_t>(i));
  return tensor;
}

using Row = std::vector<double>;

Row rowOf(const at::Tensor& matrix, std::int64_t row) {
  const double* const first = matrix.data_ptr<double>() + row * matrix.size(-1);
  return {first, first + matrix.size(-1)};
}

Row layerNorm(const Row& x, const NormWeights& norm) {
  double mean = 0, variance = 0;
  for (const double value : x) mean += value / static_cast<double>(x.size());
  for (const double value : x) variance += (value - mean) * (value - mean) / static_cast<double>(x.size());
  Row y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    y[i] = (x[i] - mean) / std::sqrt(variance + 1e-5) * norm.weight_H.data_ptr<double>()[i] + norm.bias_H.data_ptr<double>()[i];
  }
  return y;
}

Row plainLinear(const Row& x, const LinearWeights& weights) {
  Row y;
  for (std::int64_t o = 0; o < weights.weight_OI.size(0); ++o) {
    double sum = weights.bias_O.defined() ? weights.bias_O.data_ptr<double>()[o] : 0.0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * rowOf(weights.weight_OI, o)[i];
    y.push_back(sum);
  }
  return y;
}

NormWeights randomNorm(std::int64_t hidden, const std::string& name) {
  return {randomTensor({hidden}, name + "w") + 1.0, randomTensor({hidden}, name + "b")};
}
LinearWeights randomLinear(std::int64_t out, std::int64_t in, const std::string& name) {
  return {randomTensor({out, in}, name + "w"), randomTensor({out}, name + "b")};
}

constexpr std::int64_t kBatch = 2, kSequence = 5, kHidden = 6;

AttentionWeights randomAttention(std::int64_t heads, std::int64_t kvHeads, std::int64_t width) {
  return {.norm = randomNorm(kHidden, "n"),
          .query = randomLinear(heads * width, kHidden, "q"),
          .key = randomLinear(kvHeads * width, kHidden, "k"),
          .value = randomLinear(kvHeads * width, kHidden, "v"),
          .projection = randomLinear(kHidden, heads * width, "p"),
          .heads = heads,
          .kvHeads = kvHeads,
          .headDim = width};
}

/// Attention of one sample in loops over numbers.
std::vector<Row> plainAttention(const std::vector<Row>& x, const AttentionWeights& weights) {
  std::vector<Row> queries, keys, values, y;
  for (const Row& token : x) {
    const Row normed = layerNorm(token, weights.norm);
    queries.push_back(plainLinear(normed, weights.query));
    keys.push_back(plainLinear(normed, weights.key));
    values.push_back(plainLinear(normed, weights.value));
  }
  const auto width = static_cast<std::size_t>(weights.headDim), heads = static_cast<std::size_t>(weights.heads);
  for (std::size_t t = 0; t < x.size(); ++t) {
    Row context(heads * width);
    for (std::size_t head = 0; head < heads; ++head) {
      const std::size_t shared = head / (heads / static_cast<std::size_t>(weights.kvHeads));
      Row shares;
      double total = 0;
      for (std::size_t seen = 0; seen <= t; ++seen) {
        double score = 0;
        for (std::size_t i = 0; i < width; ++i) score += queries[t][head * width + i] * keys[seen][shared * width + i];
        shares.push_back(std::exp(score / std::sqrt(static_cast<double>(width))));
        total += shares.back();
      }
      for (std::size_t seen = 0; seen <= t; ++seen) {
        for (std::size_t i = 0; i < width; ++i)
          context[head * width + i] += shares[seen] / total * values[seen][shared * width + i];
      }
    }
    Row out = plainLinear(context, weights.projection);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += x[t][i];
    y.push_back(out);
  }
  return y;
}

TEST(Units, AttentionSeesWhatCameBeforeOnly) {
  for (const auto& [heads, kvHeads] : {std::pair{2, 2}, {4, 2}, {3, 1}}) {
    const AttentionWeights weights = randomAttention(heads, kvHeads, 2);
    const at::Tensor x_BSH = randomTensor({kBatch, kSequence, kHidden}, "x");
    const at::Tensor y_BSH = attention(x_BSH, weights).contiguous();
    for (std::int64_t b = 0; b < kBatch; ++b) {
      std::vector<Row> x;
      for (std::int64_t t = 0; t < kSequence; ++t) x.push_back(rowOf(x_BSH, b * kSequence + t));
      const std::vector<Row> expected = plainAttention(x, weights);
      for (std::int64_t t = 0; t < kSequence; ++t) {
        EXPECT_THAT(rowOf(y_BSH, b * kSequence + t),
                    ::testing::Pointwise(::testing::DoubleNear(1e-6), expected[static_cast<std::size_t>(t)]));
      }
    }
  }
}

TEST(Units, MlpAddsToItsInput) {
  const MlpWeights weights{
      .norm = randomNorm(kHidden, "n"), .fc1 = randomLinear(8, kHidden, "1"), .fc2 = randomLinear(kHidden, 8, "2")};
  const at::Tensor x_BSH = randomTensor({kBatch, kSequence, kHidden}, "x");
  const at::Tensor y_BSH = mlp(x_BSH, weights).contiguous();
  for (std::int64_t t = 0; t < kBatch * kSequence; ++t) {
    Row inner = plainLinear(layerNorm(rowOf(x_BSH, t), weights.norm), weights.fc1);
    for (double& value : inner) value = 0.5 * value * (1.0 + std::erf(value / std::sqrt(2.0)));
    Row expected = plainLinear(inner, weights.fc2);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += rowOf(x_BSH, t)[i];
    EXPECT_THAT(rowOf(y_BSH, t), ::testing::Pointwise(::testing::DoubleNear(1e-9), expected));
  }
}

TEST(Units, EmbeddingAddsTokenAndPosition) {
  const EmbeddingWeights weights{randomTensor({9, kHidden}, "t"), randomTensor({7, kHidden}, "p")};
  const at::Tensor tokens_BS = at::arange(4, at::kLong).view({2, 2}) * 2;
  const at::Tensor y_BSH = embed(tokens_BS, weights);
  for (std::int64_t t = 0; t < 4; ++t) {
    Row expected = rowOf(weights.token_VH, 2 * t);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += rowOf(weights.position_CH, t % 2)[i];
    EXPECT_EQ(rowOf(y_BSH, t), expected);
  }
}

TEST(Units, HeadLeavesPaddedVocabularyOut) {
  const HeadWeights weights{
      .norm = randomNorm(kHidden, "n"), .token_VH = randomTensor({8, kHidden}, "t").requires_grad_(), .vocab = 5};
  const at::Tensor x_BSH = randomTensor({kBatch, kSequence, kHidden}, "x");
  const at::Tensor targets_BS = at::arange(kBatch * kSequence, at::kLong).remainder(5).view({kBatch, kSequence});
  const at::Tensor loss = sumOfTokenLosses(x_BSH, targets_BS, weights);
  double expected = 0;
  for (std::int64_t t = 0; t < kBatch * kSequence; ++t) {
    const Row logits = plainLinear(layerNorm(rowOf(x_BSH, t), weights.norm), {weights.token_VH.detach(), {}});
    double total = 0;
    for (std::size_t v = 0; v < 5; ++v) total += std::exp(logits[v]);
    expected += std::log(total) - logits[static_cast<std::size_t>(t % 5)];
  }
  EXPECT_NEAR(loss.item<double>(), expected, 1e-6);
  loss.backward();
  EXPECT_EQ(weights.token_VH.grad().narrow(0, 5, 3).abs().max().item<double>(), 0.0);
  EXPECT_GT(weights.token_VH.grad().narrow(0, 0, 5).abs().min().item<double>(), 0.0);
}

TEST(Units, HaveTheGradientsOfFiniteDifferences) {
  AttentionWeights attentionWeights = randomAttention(4, 2, 2);
  MlpWeights mlpWeights{
      .norm = randomNorm(kHidden, "m"), .fc1 = randomLinear(8, kHidden, "1"), .fc2 = randomLinear(kHidden, 8, "2")};
  EmbeddingWeights embedding{randomTensor({8, kHidden}, "t"), randomTensor({kSequence, kHidden}, "o")};
  const HeadWeights head{.norm = randomNorm(kHidden, "h"), .token_VH = embedding.token_VH, .vocab = 7};  // tied
  const at::Tensor tokens_BS = at::arange(kBatch * kSequence, at::kLong).remainder(7).view({kBatch, kSequence});
  const auto loss = [&] {
    return sumOfTokenLosses(mlp(attention(embed(tokens_BS, embedding), attentionWeights), mlpWeights), 6 - tokens_BS, head);
  };
  const std::vector<at::Tensor> weights = {embedding.token_VH,
                                           embedding.position_CH,
                                           attentionWeights.norm.weight_H,
                                           attentionWeights.norm.bias_H,
                                           attentionWeights.query.weight_OI,
                                           attentionWeights.query.bias_O,
                                           attentionWeights.key.weight_OI,
                                           attentionWeights.value.weight_OI,
                                           attentionWeights.value.bias_O,
                                           attentionWeights.projection.weight_OI,
                                           attentionWeights.projection.bias_O,
                                           mlpWeights.norm.weight_H,
                                           mlpWeights.fc1.weight_OI,
                                           mlpWeights.fc1.bias_O,
                                           mlpWeights.fc2.weight_OI,
                                           mlpWeights.fc2.bias_O,
                                           head.norm.weight_H,
                                           head.norm.bias_H};
  for (const at::Tensor& weight : weights) weight.requires_grad_();
  loss().backward();
  constexpr double kStep = 1e-5;
  const at::NoGradGuard noGrad;
  for (std::size_t w = 0; w < weights.size(); ++w) {
    double* const values = weights[w].data_ptr<double>();
    for (std::int64_t i = 0; i < weights[w].numel(); i += 5) {
      const double kept = values[i];
      values[i] = kept + kStep;
      const double above = loss().item<double>();
      values[i] = kept - kStep;
      const double below = loss().item<double>();
      values[i] = kept;
      // The loss is summed over single tokens in double precision; what is left is the error of the differences.
      EXPECT_NEAR(weights[w].grad().data_ptr<double>()[i], (above - below) / (2 * kStep), 1e-5)
          << "weight " << w << ", element " << i;
    }
  }
}

Model smallModel() {
  Model model = *modelFromArgument("tiny-gpt");
  model.layers = 2;
  model.hidden = 16;
  model.heads = 2;
  model.kvHeads = 2;
  model.headDim = 8;
  model.ffn = 32;
  model.vocab = 100;
  model.context = 8;
  return model;
}

TEST(Parameters, StartTheSameUnderEveryPlan) {
  const Plan whole = planOf(*parseClusterShorthand("1x1:cpu"), smallModel(), {{1, 1, {"cpu-0/0"}, {0, 6}}});
  const Plan cut = planOf(*parseClusterShorthand("1x3:cpu"), smallModel(),
                          {{1, 1, {"cpu-0/2"}, {0, 6}}, {1, 1, {"cpu-0/1", "cpu-0/0"}, {0, 2, 6}}});
  const Parameters alone(blockMap(whole), 0, 0, 5);
  for (int rank = 0; rank < 3; ++rank) {
    const BlockMap map = blockMap(cut);
    const Parameters own(map, rank, 0, 5);
    for (const HeldBlock& held : heldBlocks(map, rank)) {
      const TensorSpec& tensor = map.tensors[map.blocks[held.block].tensor];
      EXPECT_TRUE(own.weight(tensor.name).equal(alone.weight(tensor.name))) << tensor.name;
    }
  }
  const Parameters other(blockMap(whole), 0, 0, 6);
  EXPECT_FALSE(other.weight("embedding.token").equal(alone.weight("embedding.token")));
  EXPECT_NEAR(alone.weight("embedding.token").std().item<double>(), 0.02, 0.002);
  EXPECT_NEAR(alone.weight("layer.1.mlp.fc2.weight").std().item<double>(), 0.01, 0.002) << "0.02 / sqrt(2 layers)";
  EXPECT_TRUE(alone.weight("head.norm.weight").equal(at::ones({16})));
  EXPECT_FALSE(alone.weight("head.weight").defined()) << "tied";
}

TEST(StageModel, HasTheSameBitsWhereverItIsCut) {
  const Model model = smallModel();
  const Plan whole = planOf(*parseClusterShorthand("1x1:cpu"), model, {{1, 1, {"cpu-0/0"}, {0, 6}}});
  const at::Tensor tokens_BS = at::arange(16, at::kLong).view({2, 8}), targets_BS = tokens_BS + 1;
  const auto gradientsWithCuts = [&](const std::vector<int>& cuts) {
    Parameters parameters(blockMap(whole), 0, 0, 1);
    std::vector<at::Tensor> inputs, outputs;
    at::Tensor x = tokens_BS;
    std::vector<StageModel> models;
    for (std::size_t s = 0; s + 1 < cuts.size(); ++s)
      models.emplace_back(model, Stage{.units = {cuts[s], cuts[s + 1]}}, parameters, oneShard());
    for (std::size_t s = 0; s < models.size(); ++s) {
      inputs.push_back(s == 0 ? x : x.detach().requires_grad_());
      outputs.push_back(models[s].forward(inputs.back(), {.targets_BS = targets_BS}));
      x = outputs.back();
    }
    outputs.back().backward();
    for (std::size_t s = outputs.size() - 1; s > 0; --s) outputs[s - 1].backward(inputs[s].grad());
    return parameters.ownGradients().clone();
  };
  const at::Tensor uncut = gradientsWithCuts({0, 6});
  EXPECT_GT(uncut.abs().sum().item<double>(), 0.0) << "autograd adds to the flat buffer";
  for (const std::vector<int>& cuts : {std::vector{0, 1, 6}, {0, 2, 6}, {0, 3, 5, 6}, {0, 1, 2, 3, 4, 5, 6}}) {
    const at::Tensor difference = (gradientsWithCuts(cuts) - uncut).abs();
    // The tied embedding gets its two parts in another order; everything else keeps its bits.
    EXPECT_LE(difference.max().item<double>(), 1e-6);
    EXPECT_LE((difference > 0).sum().item<std::int64_t>(), 128 * 16);
  }
}

TEST(StageModel, TellsWhenTheGradientsOfAUnitAreFinal) {
  for (const bool isRecomputed : {false, true}) {
    const Model model = smallModel();
    Plan plan = planOf(*parseClusterShorthand("1x1:cpu"), model, {{1, 1, {"cpu-0/0"}, {0, 6}}});
    Stage& stage = plan.pipelines[0].stages[0];
    if (isRecomputed)
      stage.recompute = {{{2, 5}, {Op::Qkv, Op::Score, Op::Norm2, Op::Fc1, Op::Activation, Op::Fc2, Op::Dropout2}}};
    Parameters parameters(blockMap(plan), 0, 0, 1);
    const StageModel stageModel(model, stage, parameters, oneShard());
    const at::Tensor tokens_BS = at::arange(16, at::kLong).view({2, 8});
    std::map<int, std::vector<at::Tensor>> then;  // by unit, the gradients of its tensors when it was told
    const auto gradientsOf = [&](int unit) {
      std::vector<at::Tensor> gradients;
      for (const TensorSpec& tensor : tensorsOf(model, unit)) {
        const bool isAddedToLater = tensor.name == "embedding.token";
        if (!isAddedToLater) gradients.push_back(parameters.weight(tensor.name).grad().clone());
      }
      return gradients;
    };
    std::vector<int> order;
    const at::Tensor loss = stageModel.forward(tokens_BS, {.targets_BS = tokens_BS + 1}, [&](int unit) {
      order.push_back(unit);
      then[unit] = gradientsOf(unit);
    });
    loss.backward();
    EXPECT_EQ(order, (std::vector{5, 4, 3, 2, 1}));
    for (const auto& [unit, gradients] : then) {
      const std::vector<at::Tensor> final = gradientsOf(unit);
      for (std::size_t i = 0; i < final.size(); ++i) EXPECT_TRUE(gradients[i].equal(final[i])) << "unit " << unit;
      EXPECT_GT(final.front().abs().sum().item<double>(), 0.0);
    }
  }
}

}  // namespace
}  // namespace evenkeel
