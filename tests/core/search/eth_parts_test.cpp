// SPDX-License-Identifier: GPL-3.0-or-later
// The steps of eth on their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/cost/evaluate.h"
#include "core/cost/stage_time.h"
#include "core/search/eth/balance.h"
#include "core/search/eth/grouping.h"
#include "core/search/eth/placement.h"
#include "tests/core/search/problems.h"

namespace evenkeel {
namespace {

using ::testing::ElementsAre;

TEST(Groupings, OfFewDevicesAreAllMultisetsOfCompositionsOnce) {
  TypeFigures one{.count = 4};
  // Partitions of 1, 2, 3 and 4 (the rest idle): 1 + 2 + 3 + 5.
  EXPECT_EQ(groupings({one}, 4).size(), 11U);
  TypeFigures two{.count = 2};
  const auto both = groupings({two, two}, 4);
  EXPECT_EQ(std::set<Grouping>(both.begin(), both.end()).size(), both.size());
  EXPECT_NE(std::ranges::find(both, Grouping{{1, 1}, {1, 1}}), both.end());
  EXPECT_NE(std::ranges::find(both, Grouping{{2, 0}, {0, 2}}), both.end());
  for (const Grouping& grouping : groupings({two, two}, 1)) EXPECT_EQ(grouping.size(), 1U);
}

TEST(Groupings, OfManyDevicesUseNoMoreThanThereAre) {
  const std::vector<TypeFigures> types = {{.count = 13}, {.count = 64}, {.count = 7}};
  for (const Grouping& grouping : groupings(types, 84)) {
    Composition sum(3, 0);
    for (const Composition& composition : grouping) {
      for (std::size_t t = 0; t < 3; ++t) sum[t] += composition[t];
    }
    for (std::size_t t = 0; t < 3; ++t) EXPECT_LE(sum[t], types[t].count);
  }
}

TEST(BalanceBatches, GivesEachPipelineWhatItFinishesInTheSameTime) {
  const PipelineChoice fast{.microBatch = 1, .stages = {}, .fill = {1.0}, .pace = {1.0}};
  const PipelineChoice slow{.microBatch = 1, .stages = {}, .fill = {2.0}, .pace = {2.0}};
  const std::vector<const PipelineChoice*> both = {&fast, &slow};
  const Balance balance = balanceBatches(both, 9);
  EXPECT_THAT(balance.batches, ElementsAre(6, 3));
  EXPECT_EQ(balance.time, Seconds{6.0});
}

TEST(BalanceBatches, LosesNoSampleOfAPrimeBatchAndLeavesOutWhatIsTooSlow) {
  const PipelineChoice fast{.microBatch = 4, .stages = {}, .fill = {1.0}, .pace = {1.0}};
  const PipelineChoice hopeless{.microBatch = 2, .stages = {}, .fill = {100.0}, .pace = {50.0}};
  const std::vector<const PipelineChoice*> both = {&fast, &hopeless};
  EXPECT_THAT(balanceBatches(both, 13).batches, ElementsAre(13, 0));
}

struct Tables {
  Problem problem;
  AnalyticProfile profile{problem.model, problem.training};
  CostModel model{problem.cluster, problem.model, problem.training, profile};
  Limits limits = limitsOf(problem);
  StageSearch search{model, limits, {.perStage = limits.recompute, .everywhere = {}}, [] { return false; }};
};

// The searches' constant-time tables and the evaluation that is reported must be the same model.
TEST(StageTable, AgreesWithTheEvaluationInTimeAndMemory) {
  Tables t{problemOf("1x8:A100-80-SXM", "gpt3-13b", 64)};
  for (const int tp : {1, 2, 4, 8}) {
    const StageTable& table = t.search.tables().of(0, tp, 2);
    ASSERT_GT(table.levelCount(), 2);
    for (int level = 0; level < table.levelCount(); ++level) {
      for (const UnitRange units : {UnitRange{0, 7}, UnitRange{7, 30}, UnitRange{30, 82}}) {
        Stage stage{.tp = tp, .units = units};
        for (int rank = 0; rank < tp; ++rank) stage.devices.push_back({0, rank});
        std::vector<Op> ops;
        for (std::size_t op = 0; op < kOpCount; ++op) {
          if (table.ops(level)[op]) ops.push_back(static_cast<Op>(op));
        }
        const UnitRange blocks{std::max(1, units.first), std::min(81, units.last)};
        if (!ops.empty()) stage.recompute = {{blocks, ops}};
        const Pipeline pipeline{.localBatch = 64, .microBatch = 2, .stages = {stage, stage}};
        const StageTime time = stageTime(t.model, pipeline, 1, 2);
        const LevelRange part{units, level};
        EXPECT_NEAR(table.forward({&part, 1}) / time.forward, 1.0, 1e-12);
        EXPECT_NEAR(table.backward({&part, 1}) / time.backward, 1.0, 1e-12);
        EXPECT_NEAR(table.time(part) / (time.forward + time.backward), 1.0, 1e-9);
      }
    }
  }
}

TEST(StageTable, FreesMoreMemoryForMoreTimeWithEachLevel) {
  Tables t{problemOf("1x8:A100-80-SXM", "gpt3-13b", 64)};
  const StageTable& table = t.search.tables().of(0, 1, 1);
  for (int level = 1; level < table.levelCount(); ++level) {
    EXPECT_GT(table.time({{1, 21}, level}), table.time({{1, 21}, level - 1}));
    EXPECT_GE(table.lastUnit(1, 81, level, Seconds{1e9}, 4, 1, false),
              table.lastUnit(1, 81, level - 1, Seconds{1e9}, 4, 1, false));
  }
}

TEST(StageSearch, FitsItsChoiceIntoTheMemoryThatTheEvaluationCharges) {
  Tables t{problemOf("2x8:Ascend-910B2,2x8:Ascend-910B4", "gpt3-13b", 256)};
  for (const Composition& composition :
       {Composition{4, 4}, Composition{16, 0}, Composition{0, 16}, Composition{3, 5}, Composition{16, 16}}) {
    const auto choice = t.search.best(composition, 32, 1, Care::Thorough);
    if (!choice) continue;
    const std::vector<std::int64_t> batches = {32};
    const std::vector<int> ranks = {0, 1, 2, 3};
    const auto pipelines = placed(t.model, t.search, t.limits, {&*choice, 1}, batches, ranks);
    ASSERT_EQ(pipelines.size(), 1U);
    EXPECT_EQ(worstLack(t.model, pipelines), std::nullopt);
    EXPECT_EQ(pipelines[0].stages.back().units.last, t.problem.model.unitCount());
    // The estimate that the search compares by is near the number that is reported.
    EXPECT_NEAR(choice->time(pipelines[0].microBatchCount()) / simulate(pipelineTimes(t.model, pipelines[0])).time, 1.0, 0.05);
  }
}

}  // namespace
}  // namespace evenkeel
