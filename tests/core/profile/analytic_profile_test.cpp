// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/profile/analytic_profile.h"

#include <gtest/gtest.h>

#include "core/cluster/catalogue.h"

namespace evenkeel {
namespace {

struct Case {
  Model model = *modelFromArgument("gpt3-1.3b");
  Training training{.sequenceLength = 2048, .globalBatch = 8, .precision = Precision::Bf16};
  DeviceType device = *deviceTypeNamed("A100-80-SXM");
  [[nodiscard]] OpCost cost(Op op, int tp = 1, std::int64_t samples = 2) const {
    return AnalyticProfile(model, training).cost(device, op, tp, samples);
  }
};

TEST(AnalyticProfile, IsInverselyProportionalToTheSpeed) {
  Case c;
  const OpCost full = c.cost(Op::Fc1);
  c.device.speed = 0.25;
  EXPECT_NEAR(c.cost(Op::Fc1).forward / full.forward, 4.0, 1e-9);
  EXPECT_NEAR(c.cost(Op::Fc1).backward / full.backward, 4.0, 1e-9);
}

// SimAI #208, public Metis: a property that moves nothing (field-faults).
TEST(AnalyticProfile, MovesWithEveryFigureOfTheDevice) {
  const Case base;
  Case c = base;
  c.device.peak[Precision::Bf16] = 0.5 * c.device.peak[Precision::Bf16];
  EXPECT_GT(c.cost(Op::Qkv).forward, base.cost(Op::Qkv).forward);
  c = base;
  c.device.memoryBandwidth = 0.5 * c.device.memoryBandwidth;
  EXPECT_GT(c.cost(Op::Norm1).backward, base.cost(Op::Norm1).backward);
  c = base;
  c.device.intra.bandwidth = 0.5 * c.device.intra.bandwidth;
  EXPECT_GT(c.cost(Op::Projection, 2).forward, base.cost(Op::Projection, 2).forward);
  EXPECT_EQ(c.cost(Op::Projection, 1).forward, base.cost(Op::Projection, 1).forward);
  c = base;
  c.device.intra.latency = 2 * c.device.intra.latency;
  EXPECT_GT(c.cost(Op::Fc1, 2).backward, base.cost(Op::Fc1, 2).backward);
}

TEST(AnalyticProfile, GrowsWithTheSamplesAndSharesTheWorkOverTp) {
  const Case c;
  for (int op = 0; op < kOpCount; ++op) {
    EXPECT_LE(c.cost(static_cast<Op>(op), 1, 2).forward, c.cost(static_cast<Op>(op), 1, 4).forward);
    EXPECT_GE(c.cost(static_cast<Op>(op), 1, 2).saved, c.cost(static_cast<Op>(op), 2, 2).saved);
    EXPECT_EQ(c.cost(static_cast<Op>(op)).source, ValueSource::Analytic);
  }
  EXPECT_LT(c.cost(Op::Score, 4).forward, c.cost(Op::Score, 1).forward);
}

TEST(AnalyticProfile, TrainsOnACpuCoreAtAboutTheSpeedOfItsBlas) {
  Case c;
  c.model = *modelFromArgument("tiny-gpt");
  c.training = {.sequenceLength = 128, .globalBatch = 8, .precision = Precision::Fp32};
  c.device = *deviceTypeNamed("cpu");
  // 2 x 512 tokens x 128 x 512 products, forward: 67 MFLOP, about 1.2 ms of product and 0.2 ms of traffic and overhead.
  EXPECT_NEAR(milliseconds(c.cost(Op::Fc1, 1, 4).forward), 1.4, 0.4);
}

}  // namespace
}  // namespace evenkeel
