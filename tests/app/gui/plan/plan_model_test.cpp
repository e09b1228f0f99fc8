// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/plan/plan_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <QSignalSpy>

#include "app/gui/plan/stage_cards.h"
#include "tests/app/gui/plan/demo.h"

namespace evenkeel::gui {
namespace {

using ::testing::HasSubstr;
using Tester = QAbstractItemModelTester;

/// Two equal pipelines of two stages, and a third with other devices; two devices idle.
Plan threePipelines() {
  Plan plan;
  plan.cluster = *parseClusterShorthand("2x2:A100-80-SXM,1x4:V100-32-SXM2");
  plan.model = *modelFromArgument("tiny-gpt");
  plan.training = resolveTraining({}, plan.cluster, plan.model);
  const int units = plan.model.unitCount();
  const auto stage = [](std::vector<DeviceId> devices, int first, int last) {
    Stage made;
    made.devices = std::move(devices);
    made.units = {first, last};
    return made;
  };
  for (int node = 0; node < 2; ++node)
    plan.pipelines.push_back({24, 2, {stage({{node, 0}}, 0, 4), stage({{node, 1}}, 4, units)}});
  plan.pipelines.push_back({16, 1, {stage({{2, 0}}, 0, 8), stage({{2, 1}}, 8, units)}});
  plan.pipelines[2].stages[0].recompute = {{{0, 8}, {Op::Softmax}}, {{1, 2}, {Op::Score}}};
  return evaluate(plan, AnalyticProfile(plan.model, plan.training), false).plan;
}

TEST(PlanFacts, FoldEqualPipelinesAndCountIdleDevices) {
  const PlanFacts facts = planFacts(threePipelines());
  ASSERT_EQ(facts.pipelines.size(), 2U);
  EXPECT_EQ(placeText(facts.pipelines[0]), QStringLiteral("Pipelines 0 to 1, each"));
  EXPECT_EQ(placeText(facts.pipelines[1]), QStringLiteral("Pipeline 2"));
  EXPECT_EQ(facts.idle, QStringLiteral("2 × V100-32-SXM2"));
  EXPECT_EQ(facts.find(1, 1), facts.find(0, 1)) << "a folded pipeline shows the first";
  EXPECT_EQ(facts.find(3, 0), nullptr);
}

TEST(PlanFacts, CountLayersInHalvesAndOpsByKind) {
  const PlanFacts facts = planFacts(threePipelines());
  const StageFacts& stage = facts.pipelines[1].stages[0];
  EXPECT_EQ(stage.layers, 3.5);
  EXPECT_EQ(layersText(stage), QStringLiteral("embedding, 3.5 layers"));
  EXPECT_EQ(stage.ops[static_cast<std::size_t>(Op::Softmax)], (OpShare{4, 4}));
  EXPECT_EQ(stage.ops[static_cast<std::size_t>(Op::Score)], (OpShare{4, 1}));
  EXPECT_EQ(recomputeText(stage), QStringLiteral("2 of 14 kinds of op recomputed: score in 1 of 4, softmax"));
  EXPECT_EQ(recomputeText(facts.pipelines[0].stages[0]), QStringLiteral("nothing recomputed"));
}

TEST(PlanFacts, NameOneBottleneck) {
  const PlanFacts facts = planFacts(threePipelines());
  int marked = 0;
  for (const PipelineFacts& pipeline : facts.pipelines) {
    for (const StageFacts& stage : pipeline.stages) marked += stage.isBottleneck;
  }
  EXPECT_EQ(marked, 1);
  EXPECT_THAT(facts.bottleneck.toStdString(), HasSubstr("compute"));
}

TEST(PlanFacts, SayHowFullMemoryIsInWordsAndSigns) {
  MemoryUse memory;
  memory.capacity = Bytes{1000};
  const std::vector<std::tuple<int, QString, QString>> cases = {{840, QString(), QStringLiteral("%")},
                                                                {850, QStringLiteral("!"), QStringLiteral("nearly full")},
                                                                {951, QStringLiteral("!!"), QStringLiteral(", full")}};
  for (const auto& [used, sign, words] : cases) {
    memory.weights = Bytes{used};
    EXPECT_EQ(signOf(fullness(memory)), sign) << used;
    EXPECT_TRUE(memoryText(memory).endsWith(words)) << memoryText(memory).toStdString();
  }
}

TEST(PlanModel, KeepsTheRulesOfItsKind) {
  PlanModel model;
  const Tester tester(&model, Tester::FailureReportingMode::Fatal);
  model.setFacts(planFacts(threePipelines()));
  EXPECT_EQ(model.rowCount(), 2);
  EXPECT_EQ(model.rowCount(model.index(1, 0)), 2);
  model.setFacts(planFacts(demoPlan()));
  model.setFacts({});
  EXPECT_EQ(model.rowCount(), 0);
}

TEST(PlanModel, ChangesValuesInPlaceWhereTheRowsStayTheSame) {
  PlanModel model;
  Plan plan = threePipelines();
  model.setFacts(planFacts(plan));
  const QSignalSpy reset(&model, &QAbstractItemModel::modelReset);
  plan.pipelines[2].localBatch = 32;
  model.setFacts(planFacts(plan));
  EXPECT_EQ(reset.count(), 0);
  EXPECT_EQ(model.index(1, PlanModel::Samples).data().toString(), QStringLiteral("32"));
}

TEST(PlanModel, ShowsValuesOfAPipelineInItsOwnRowOnly) {
  PlanModel model;
  model.setFacts(planFacts(threePipelines()));
  const QModelIndex pipeline = model.index(0, 0), stage = model.index(0, 0, pipeline);
  EXPECT_EQ(pipeline.siblingAtColumn(PlanModel::Samples).data().toString(), QStringLiteral("24"));
  EXPECT_EQ(stage.siblingAtColumn(PlanModel::Samples).data().toString(), QString());
  EXPECT_EQ(stage.siblingAtColumn(PlanModel::Layers).data().toString(), QStringLiteral("1.5"));
  EXPECT_EQ(stage.siblingAtColumn(PlanModel::Devices).data().toString(), QStringLiteral("1 × A100-80-SXM"));
  EXPECT_EQ(model.indexOf(1, 1), model.index(1, 0, pipeline));
}

TEST(PlanModel, SaysItsPicturesInWords) {
  PlanModel model;
  model.setFacts(planFacts(threePipelines()));
  const QModelIndex stage = model.index(0, PlanModel::Recomputed, model.index(1, 0));
  EXPECT_EQ(stage.data(Qt::AccessibleTextRole).toString(),
            QStringLiteral("2 of 14 kinds of op recomputed: score in 1 of 4, softmax"));
  EXPECT_TRUE(
      stage.siblingAtColumn(PlanModel::Memory).data(Qt::AccessibleTextRole).toString().contains(QStringLiteral("GiB of")));
}

TEST(PlanModel, CopiesAsTabSeparatedText) {
  PlanModel model;
  model.setFacts(planFacts(threePipelines()));
  const QStringList lines = model.tsv().split(QLatin1Char('\n'), Qt::SkipEmptyParts);
  ASSERT_EQ(lines.size(), 1 + 2 + 4);
  for (const QString& line : lines) EXPECT_EQ(line.count(QLatin1Char('\t')), PlanModel::ColumnCount - 1) << line.toStdString();
  EXPECT_EQ(model.tsv({model.index(1, 0)}).count(QLatin1Char('\n')), 2);
}

TEST(CardPlaces, FillTheWidthByShareOfTheUnitsAndNeverGetTooNarrow) {
  const PlanFacts facts = planFacts(threePipelines());
  const auto places = cardPlaces(facts, 800, 100, 20, 60);
  ASSERT_EQ(places.size(), 4U);
  EXPECT_LT(places[0].rect.width(), places[1].rect.width()) << "4 units against the rest";
  EXPECT_EQ(places[1].rect.right(), places[3].rect.right());
  EXPECT_FALSE(places[0].rect.intersects(places[1].rect));
  EXPECT_LT(places[1].rect.bottom(), places[2].rect.top());
  for (const CardPlace& place : cardPlaces(facts, 10, 100, 20, 60)) EXPECT_EQ(place.rect.width(), 100);
}

}  // namespace
}  // namespace evenkeel::gui
