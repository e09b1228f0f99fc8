// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/nn/dropout.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace evenkeel {
namespace {

constexpr Dropout kDropout{.probability = 0.25, .seed = 9};

at::Tensor drawn(const at::Tensor& x, const Batch& batch, DropoutPart part, Op op = Op::Dropout1, int layer = 1) {
  return drop(x, kDropout, op, layer, batch, part);
}

TEST(Dropout, KeepsTheMeanAndPassesTheGradientOfWhatItKeeps) {
  const at::Tensor x = at::ones({4, 50, 50}).requires_grad_();
  const at::Tensor y = drawn(x, {}, {4, 2500, 0});
  y.sum().backward();
  EXPECT_NEAR(y.mean().item<double>(), 1.0, 0.02);
  EXPECT_TRUE(x.grad().equal(y.detach()));
  EXPECT_EQ(((y == 0).logical_or(y == 1 / 0.75F)).sum().item<std::int64_t>(), 10'000);
}

TEST(Dropout, DrawsAnElementAlikeWhoeverHoldsIt) {
  const at::Tensor x = at::rand({3, 2, 35}) + 0.5;
  const at::Tensor whole = drawn(x, {.step = 4, .firstSample = 10}, {3, 70, 0});
  const at::Tensor second = drawn(x.narrow(0, 1, 2).contiguous(), {.step = 4, .firstSample = 11}, {2, 70, 0});
  EXPECT_TRUE(second.equal(whole.narrow(0, 1, 2))) << "another micro-batch";
  const at::Tensor half = drawn(x.narrow(1, 1, 1).contiguous(), {.step = 4, .firstSample = 10}, {3, 70, 35});
  EXPECT_TRUE(half.equal(whole.narrow(1, 1, 1))) << "another shard";
}

TEST(Dropout, DrawsAnewForEachStepLayerAndOp) {
  const at::Tensor x = at::ones({1, 400});
  const at::Tensor one = drawn(x, {.step = 4}, {1, 400, 0});
  EXPECT_FALSE(one.equal(drawn(x, {.step = 5}, {1, 400, 0})));
  EXPECT_FALSE(one.equal(drawn(x, {.step = 4, .firstSample = 1}, {1, 400, 0})));
  EXPECT_FALSE(one.equal(drawn(x, {.step = 4}, {1, 400, 0}, Op::Dropout2)));
  EXPECT_FALSE(one.equal(drawn(x, {.step = 4}, {1, 400, 0}, Op::Dropout1, 2)));
}

}  // namespace
}  // namespace evenkeel
