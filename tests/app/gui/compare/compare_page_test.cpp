// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/compare/compare_page.h"

#include <gtest/gtest.h>

#include <QCheckBox>
#include <QLabel>
#include <QPushButton>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

#include "app/gui/compare/compare_column.h"
#include "app/gui/compare/figure_bars.h"
#include "app/gui/compare/memory_bars.h"
#include "app/gui/timeline/timeline_view.h"
#include "tests/app/gui/plan/demo.h"

namespace evenkeel::gui {
namespace {

constexpr int kPatience = 20'000;  // ms; only a hanging search takes this long

/// Never ends by itself and has no plan.
Planner endlessPlanner() {
  Planner planner;
  planner.name = "endless";
  planner.plan = [](const SearchTask&, SearchObserver&, const std::stop_token& stop) -> Result<Plan> {
    while (!stop.stop_requested()) std::this_thread::yield();
    return Error{Error::Code::Cancelled, "endless", "was stopped", {}};
  };
  return planner;
}

bool finishes(const CompareRuns& runs) {
  return QTest::qWaitFor([&] { return !runs.isRunning(); }, kPatience);
}

TEST(CompareRuns, RunsOneAfterTheOtherOnTheSameProblem) {
  CompareRuns runs;
  const QSignalSpy finished(&runs, &CompareRuns::finished);
  runs.start({*plannerNamed("uniform"), *plannerNamed("eth")}, demoRequest("eth"));
  EXPECT_EQ(runs.runningIndex(), 0);
  EXPECT_EQ(runs.contenders()[1].state, Contender::State::Waiting);
  ASSERT_TRUE(finishes(runs));
  EXPECT_EQ(finished.count(), 1);
  for (const Contender& contender : runs.contenders()) {
    ASSERT_TRUE(contender.evaluation);
    EXPECT_FALSE(contender.evaluation->timeline.spans.empty());
    EXPECT_GE(contender.evaluation->plan.predicted->iteration, *runs.best());
  }
}

TEST(CompareRuns, EachCanBeCancelledAlone) {
  const Planner endless = endlessPlanner();
  CompareRuns runs;
  runs.start({&endless, *plannerNamed("uniform"), *plannerNamed("eth")}, demoRequest("eth"));
  runs.cancel(1);
  EXPECT_EQ(runs.contenders()[1].state, Contender::State::Cancelled);
  runs.cancel(0);
  ASSERT_TRUE(finishes(runs));
  EXPECT_EQ(runs.contenders()[0].result->error().code, Error::Code::Cancelled);
  EXPECT_FALSE(runs.contenders()[1].result);
  EXPECT_TRUE(runs.contenders()[2].evaluation);
}

TEST(AgainstBest, IsTheShareOfThroughputThatIsMissing) {
  EXPECT_EQ(againstBestText({2}, {2}), QStringLiteral("best"));
  EXPECT_EQ(againstBestText({2.5}, {2}), QStringLiteral("−20.0\u2009%"));
}

TEST(FoldedTimeline, KeepsTheFirstOfEqualPipelines) {
  Project project = demoProject("2x2:A100-80-SXM");
  const Plan plan = demoPlan(project, "uniform");
  const Evaluation evaluation = evaluate(plan, AnalyticProfile(plan.model, plan.training));
  const PlanFacts facts = planFacts(evaluation.plan);
  const Timeline folded = foldedTimeline(evaluation.timeline, facts);
  std::size_t stages = 0;
  for (const PipelineFacts& pipeline : facts.pipelines) stages += pipeline.stages.size();
  EXPECT_EQ(folded.lanes.size(), stages);
  for (const Span& span : folded.spans) {
    EXPECT_LT(span.lane, static_cast<int>(stages));
    EXPECT_LT(span.waitsForLane, static_cast<int>(stages));
  }
}

TEST(MemoryBars, OfAllGroupsFitIntoTheWidth) {
  const auto factsOf = [](int stages) {
    PlanFacts facts;
    facts.pipelines.emplace_back();
    for (int s = 0; s < stages; ++s) {
      facts.pipelines.back().stages.push_back({.stage = s, .predicted = StagePrediction{}});
      facts.pipelines.back().stages.back().predicted->memory.capacity = Bytes{100};
    }
    return facts;
  };
  MemoryBars bars;
  bars.resize(330, 200);
  bars.setGroups({{QStringLiteral("few"), factsOf(1)}, {QStringLiteral("many"), factsOf(40)}});
  QString last;
  for (int x = 0; x < bars.width() - 4; ++x) {
    if (const QString text = bars.textAt({x, 100}); !text.isEmpty()) last = text;
  }
  EXPECT_TRUE(last.contains(QStringLiteral("stage 39"))) << last.toStdString();
}

class ComparePageTest : public ::testing::Test {
 protected:
  ComparePageTest() {
    page_.resize(1200, 720);
    page_.show();
    EXPECT_TRUE(QTest::qWaitForWindowExposed(&page_));
  }
  void load(const Project& project = demoProject()) {
    document_.edit(QStringLiteral("load"), [&](Project& p) { p = project; });
  }
  bool compare() {
    QTest::keyClick(&page_, Qt::Key_F5);
    return QTest::qWaitFor([&] { return child<QPushButton>("compareStart")->isEnabled(); }, kPatience);
  }
  template <class T>
  T* child(const char* name) {
    return page_.findChild<T*>(QString::fromLatin1(name));
  }
  QTemporaryDir folder_;
  ProjectDocument document_{folder_.filePath(QStringLiteral("recovery"))};
  Selection selection_;
  MessageLine messages_;
  Workspace workspace_{document_, selection_, messages_};
  ComparePage page_{workspace_, folder_.filePath(QStringLiteral("commands"))};
};

TEST_F(ComparePageTest, NeedsAProblemAndATickedPlanner) {
  EXPECT_EQ(page_.missing(), QStringLiteral("Draw a cluster and choose a model first"));
  load();
  EXPECT_TRUE(child<QPushButton>("compareStart")->isEnabled());
  for (auto* box : page_.findChildren<QCheckBox*>()) box->setChecked(false);
  EXPECT_FALSE(child<QPushButton>("compareStart")->isEnabled());
}

TEST_F(ComparePageTest, StandsAllPlansAbreastAndStacksTheirTimelines) {
  load();
  const QSignalSpy started(&workspace_, &Workspace::jobStarted), ended(&workspace_, &Workspace::jobEnded),
      commands(&workspace_, &Workspace::commandShown);
  ASSERT_TRUE(compare());
  EXPECT_EQ(started.count(), static_cast<int>(planners().size()));
  EXPECT_EQ(ended.count(), started.count());
  EXPECT_TRUE(commands[0][0].toString().contains(QStringLiteral("evenkeel-cli compare")))
      << commands[0][0].toString().toStdString();
  for (const char* column : {"column-eth", "column-uniform"}) {
    ASSERT_NE(child<CompareColumn>(column), nullptr);
    EXPECT_FALSE(child<CompareColumn>(column)->findChild<QLabel*>(QStringLiteral("figure0"))->text().isEmpty());
  }
  const auto* timeline = child<TimelineView>("compareTimeline");
  EXPECT_GT(timeline->axis().total(), Seconds{0});
  EXPECT_TRUE(child<MemoryBars>("memoryBars")->accessibleDescription().contains(QStringLiteral("eth, Pipeline")));
  EXPECT_FALSE(child<QLabel>("compareStale")->isVisible());
  document_.edit(QStringLiteral("batch"), [](Project& p) { p.training.globalBatch = 14; });
  EXPECT_TRUE(child<QLabel>("compareStale")->isVisible());
}

TEST_F(ComparePageTest, APlanThatIsUsedIsOneOfTheProjectsUntilUndo) {
  load();
  ASSERT_TRUE(compare());
  const QSignalSpy modes(&workspace_, &Workspace::modeRequested);
  QTest::mouseClick(child<CompareColumn>("column-uniform")->findChild<QPushButton*>(QStringLiteral("compareUse")),
                    Qt::LeftButton);
  ASSERT_EQ(document_.project().plans.size(), 1U);
  EXPECT_TRUE(QString::fromStdString(document_.project().plans[0].name).startsWith(QStringLiteral("uniform, ")));
  EXPECT_EQ(modes.count(), 1);
  document_.undoStack().undo();
  EXPECT_TRUE(document_.project().plans.empty());
}

TEST_F(ComparePageTest, ShowsOnlyDifferencesWhenAsked) {
  load();
  ASSERT_TRUE(compare());
  const auto figure = [&](const char* column, int index) {
    return child<CompareColumn>(column)->findChild<QLabel*>(QStringLiteral("figure%1").arg(index));
  };
  constexpr int kIteration = 0, kOwnEstimate = 9;
  EXPECT_TRUE(figure("column-eth", kOwnEstimate)->isVisible());
  // Alone with itself a planner has nothing that differs; with uniform it has another time but no estimate of its own.
  for (auto* box : page_.findChildren<QCheckBox*>()) {
    if (box->objectName() != QStringLiteral("compareOnlyDifferences"))
      box->setChecked(box->text() == QStringLiteral("optimal") || box->text() == QStringLiteral("uniform"));
  }
  ASSERT_TRUE(compare());
  child<QCheckBox>("compareOnlyDifferences")->setChecked(true);
  EXPECT_FALSE(figure("column-uniform", kOwnEstimate)->isVisible());
  EXPECT_TRUE(figure("column-uniform", kIteration)->isVisible());
  child<QCheckBox>("compareOnlyDifferences")->setChecked(false);
  EXPECT_TRUE(figure("column-uniform", kOwnEstimate)->isVisible());
}

TEST_F(ComparePageTest, ExportsTheReportWithTheCommandThatComparesTheSame) {
  load();
  EXPECT_FALSE(child<QPushButton>("compareExport")->isEnabled());
  ASSERT_TRUE(compare());
  EXPECT_TRUE(child<QPushButton>("compareExport")->isEnabled());
  const QString file = folder_.filePath(QStringLiteral("report.html"));
  ASSERT_TRUE(page_.exportReport(file));
  const std::string html = *readFile(file.toStdString());
  for (const char* part : {"hexiscale", "timeline of metis", "evenkeel-cli compare --cluster 1x2:cpu@0.5,1x2:cpu@0.25"})
    EXPECT_NE(html.find(part), std::string::npos) << part;
  EXPECT_FALSE(page_.exportReport(QStringLiteral("/no/such/folder/report.html")));
}

TEST_F(ComparePageTest, DrawsTheKeyFiguresOfAllPlanners) {
  load();
  ASSERT_TRUE(compare());
  const QString words = child<FigureBars>("figureBars")->accessibleDescription();
  for (const Planner& planner : planners())
    EXPECT_TRUE(words.contains(QString::fromStdString(planner.name) + QStringLiteral(", Samples/s: "))) << planner.name;
}

TEST_F(ComparePageTest, APlannerWithoutAPlanKeepsItsColumnWithTheReason) {
  Project project = demoProject();
  project.model = *modelFromArgument("gpt3-175b");
  load(project);
  for (auto* box : page_.findChildren<QCheckBox*>()) {
    if (box->objectName() != QStringLiteral("compare-eth") && box->objectName() != QStringLiteral("compare-metis"))
      box->setChecked(false);
  }
  ASSERT_TRUE(compare());
  const auto* reason = child<CompareColumn>("column-eth")->findChild<QLabel*>(QStringLiteral("compareReason"));
  EXPECT_TRUE(reason->isVisible());
  EXPECT_TRUE(reason->text().contains(QStringLiteral("lacks"))) << reason->text().toStdString();
  EXPECT_FALSE(child<QPushButton>("compareExport")->isEnabled());
}

}  // namespace
}  // namespace evenkeel::gui
