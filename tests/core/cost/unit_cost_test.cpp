// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cost/unit_cost.h"

#include <gtest/gtest.h>

#include "core/cluster/catalogue.h"
#include "core/profile/analytic_profile.h"

namespace evenkeel {
namespace {

struct Case {
  Model model = *modelFromArgument("gpt3-13b");
  Training training{.sequenceLength = 2048, .globalBatch = 8, .precision = Precision::Bf16};
  OpCosts costs;
  Case() {
    const AnalyticProfile profile(model, training);
    for (int op = 0; op < kOpCount; ++op) {
      costs[static_cast<std::size_t>(op)] = profile.cost(*deviceTypeNamed("A100-80-SXM"), static_cast<Op>(op), 1, 1);
    }
  }
};

OpSet setOf(std::initializer_list<Op> ops) {
  OpSet set;
  for (const Op op : ops) set.set(static_cast<std::size_t>(op));
  return set;
}

// Korthikanti et al. 2022: selective recomputation leaves 34 s b h a layer, full recomputation the inputs of the blocks.
TEST(UnitCost, KeepsOnlyTheInputOfARecomputedRun) {
  const Case c;
  const std::int64_t sbh = c.training.sequenceLength * c.model.hidden;
  const OpSet core = setOf({Op::Score, Op::Softmax, Op::AttentionDropout, Op::Context});
  EXPECT_EQ(unitCost(c.costs, UnitKind::Attention, core).saved.value + unitCost(c.costs, UnitKind::Mlp, core).saved.value,
            34 * sbh);
  EXPECT_EQ(unitCost(c.costs, UnitKind::Attention, OpSet().set()).saved.value, 2 * sbh);
  EXPECT_EQ(unitCost(c.costs, UnitKind::Mlp, OpSet().set()).saved.value, 2 * sbh);
}

TEST(UnitCost, AddsTheForwardOfRecomputedOpsToTheBackward) {
  const Case c;
  const UnitCost none = unitCost(c.costs, UnitKind::Mlp, {}), all = unitCost(c.costs, UnitKind::Mlp, OpSet().set());
  EXPECT_EQ(all.forward, none.forward);
  EXPECT_DOUBLE_EQ(all.backward.value, (none.backward + none.forward).value);
  EXPECT_GT(all.transient, none.transient);  // the run is expanded while its backward runs
}

// An op whose input must stay anyway saves nothing: flagging the activation alone does not help, with fc1 it does.
TEST(UnitCost, SavesNothingWhereTheInputIsAsLargeAsWhatIsDropped) {
  const Case c;
  const Bytes none = unitCost(c.costs, UnitKind::Mlp, {}).saved;
  EXPECT_EQ(unitCost(c.costs, UnitKind::Mlp, setOf({Op::Activation})).saved, none);
  const std::int64_t dropped = 8 * c.training.sequenceLength * c.model.hidden;
  EXPECT_EQ(unitCost(c.costs, UnitKind::Mlp, setOf({Op::Fc1, Op::Activation})).saved.value, none.value - dropped);
}

}  // namespace
}  // namespace evenkeel
