// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/profile/analytic_profile.h"

#include <gtest/gtest.h>

#include "core/cluster/catalogue.h"
#include "core/plan/problem.h"

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

// Measured by bench_unit_times (tiny-gpt, sequence 128, micro-batch 8, one core of a Xeon with AVX-512, lowest of 14 runs): milliseconds.
TEST(AnalyticProfile, PredictsTheUnitsThatWereMeasuredOnACpuCore) {
  struct Measured {
    UnitKind kind;
    double forward, backward, tolerance;
  };
  Case c;
  c.model = *modelFromArgument("tiny-gpt");
  c.training = {.sequenceLength = 128, .globalBatch = 8, .precision = Precision::Fp32};
  c.device = *deviceTypeNamed("cpu");
  for (const Measured& unit : {Measured{UnitKind::Attention, 3.387, 5.312, 0.16}, Measured{UnitKind::Mlp, 2.728, 5.207, 0.13},
                               Measured{UnitKind::Head, 0.990, 1.521, 0.27}}) {
    double forward = 0, backward = 0;
    for (const Op op : opsOf(unit.kind)) {
      forward += milliseconds(c.cost(op, 1, 8).forward);
      backward += milliseconds(c.cost(op, 1, 8).backward);
    }
    EXPECT_NEAR(forward, unit.forward, unit.tolerance * unit.forward) << static_cast<int>(unit.kind);
    EXPECT_NEAR(backward, unit.backward, unit.tolerance * unit.backward) << static_cast<int>(unit.kind);
  }
}

TEST(AnalyticProfile, TakesTheTimesOfATableOfLayersAtTheSpeedOfTheDevice) {
  Model model;
  model.layers = 2;
  model.hidden = model.context = 8;
  model.heads = model.kvHeads = 1;
  model.headDim = model.ffn = model.vocab = model.vocabMultiple = 1;
  OpaqueLayer layer{.name = "block", .forward = {1e9}};
  layer.times["A100-80-SXM"] = {Seconds{0.001}, Seconds{0.003}};
  model.opaque = OpaqueLayers{layer, layer, layer};
  const Cluster cluster = *parseClusterShorthand("1x1:A100-80-SXM,1x1:A100-80-SXM@0.5,1x1:V100-32-SXM2");
  const AnalyticProfile profile(model, resolveTraining({.precision = Precision::Fp16}, cluster, model));
  const OpCost whole = profile.cost(cluster.deviceTypes[0], Op::Qkv, 1, 4);
  EXPECT_EQ(whole.source, ValueSource::Imported);
  EXPECT_DOUBLE_EQ(whole.forward.value, 0.004);
  EXPECT_DOUBLE_EQ(profile.cost(cluster.deviceTypes[1], Op::Qkv, 1, 4).backward.value, 0.024);
  const OpCost estimated = profile.cost(cluster.deviceTypes[2], Op::Qkv, 1, 4);
  EXPECT_EQ(estimated.source, ValueSource::Analytic);
  EXPECT_GT(estimated.forward, Seconds{});
  EXPECT_EQ(profile.cost(cluster.deviceTypes[0], Op::Fc1, 1, 4).forward, Seconds{}) << "its second half is empty";
}

}  // namespace
}  // namespace evenkeel
