// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/plan/search_session.h"
#include "app/gui/plan/search_panel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QFile>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>
#include <latch>

#include "app/gui/plan/search_command.h"
#include "tests/app/gui/plan/demo.h"

namespace evenkeel::gui {
namespace {

using ::testing::HasSubstr;

constexpr int kPatience = 20'000;  // ms; only a hanging search takes this long

/// Tells one step, one incumbent after the other, and goes on until it is stopped; its best plan is that of `uniform`.
Planner endlessPlanner() {
  Planner planner;
  planner.name = "endless";
  planner.plan = [](const SearchTask& task, SearchObserver& observer, const std::stop_token& stop) -> Result<Plan> {
    observer.onPhase("forever");
    SearchObserver silent;
    auto plan = (*plannerNamed("uniform"))->plan(task, silent, {});
    if (plan) observer.onIncumbent({*plan, {}, "uniform"});
    while (!stop.stop_requested()) std::this_thread::yield();
    return plan;
  };
  return planner;
}

class SearchSessionTest : public ::testing::Test {
 protected:
  bool finishes() {
    return QTest::qWaitFor([&] { return session_.result().has_value(); }, kPatience);
  }
  SearchSession session_;
};

TEST_F(SearchSessionTest, FindsAPlanForTheDemoAndShowsHow) {
  const QSignalSpy finished(&session_, &SearchSession::finished);
  session_.start(demoRequest("eth"));
  EXPECT_TRUE(session_.isRunning());
  ASSERT_TRUE(finishes());
  EXPECT_EQ(finished.count(), 1);
  ASSERT_TRUE(*session_.result());
  const Plan& plan = **session_.result();
  const SearchSnapshot snapshot = session_.snapshot();
  EXPECT_FALSE(snapshot.isRunning);
  ASSERT_FALSE(snapshot.curve.empty());
  EXPECT_EQ(snapshot.curve.back().iteration, plan.predicted->iteration);
  EXPECT_FALSE(snapshot.curve.back().finder.empty());
  EXPECT_FALSE(snapshot.steps.empty());
  EXPECT_EQ(snapshot.bound, plan.predicted->lowerBound);
  EXPECT_GT(snapshot.counters.evaluated, 0);
  EXPECT_GT(snapshot.gap(), 0.0);
  EXPECT_EQ(rememberedSearch(plan).curve.back().iteration.value, rounded(milliseconds(plan.predicted->iteration)) / 1e3);
}

TEST_F(SearchSessionTest, StoppingKeepsTheBestPlanSoFar) {
  const Planner endless = endlessPlanner();
  SearchRequest request = demoRequest("uniform");
  request.planner = &endless;
  session_.start(request);
  ASSERT_TRUE(QTest::qWaitFor([&] { return !session_.snapshot().curve.empty(); }, kPatience));
  EXPECT_TRUE(session_.snapshot().isRunning);
  session_.stop();
  ASSERT_TRUE(finishes());
  EXPECT_TRUE(session_.result()->ok());
  EXPECT_FALSE(session_.isRunning());
}

TEST_F(SearchSessionTest, ASecondStartDropsTheFirst) {
  static const Planner endless = endlessPlanner();
  SearchRequest request = demoRequest("uniform");
  request.planner = &endless;
  session_.start(request);
  const QSignalSpy finished(&session_, &SearchSession::finished);
  session_.start(demoRequest("uniform"));
  ASSERT_TRUE(finishes());
  EXPECT_EQ(session_.snapshot().planner, "uniform");
  QCoreApplication::processEvents();
  EXPECT_EQ(finished.count(), 1);
}

TEST_F(SearchSessionTest, AbandoningDoesNotWaitForThePlanner) {
  static std::latch began{1}, goOn{1};
  static Planner deaf = endlessPlanner();  // to stop requests, until it may go on
  deaf.plan = [](const SearchTask&, SearchObserver&, const std::stop_token& stop) -> Result<Plan> {
    began.count_down();
    goOn.wait();
    return Error{Error::Code::Cancelled, stop.stop_requested() ? "asked to stop" : "not asked", {}, {}};
  };
  SearchRequest request = demoRequest("uniform");
  request.planner = &deaf;
  const QSignalSpy finished(&session_, &SearchSession::finished);
  session_.start(request);
  began.wait();
  session_.abandon();  // would never come back if it waited
  EXPECT_FALSE(session_.isRunning());
  session_.start(demoRequest("uniform"));
  ASSERT_TRUE(finishes());
  goOn.count_down();
  session_.abandon();
  session_.start(demoRequest("uniform"));
  ASSERT_TRUE(finishes());
  EXPECT_EQ(finished.count(), 2);
}

TEST_F(SearchSessionTest, AnInfeasibleProblemEndsWithThePlannersReason) {
  SearchRequest request = demoRequest("uniform");
  request.problem.model = *modelFromArgument("gpt3-175b");
  request.problem.training = resolveTraining({}, request.problem.cluster, request.problem.model);
  session_.start(request);
  ASSERT_TRUE(finishes());
  ASSERT_FALSE(session_.result()->ok());
  EXPECT_EQ(session_.result()->error().code, Error::Code::Infeasible);
}

TEST_F(SearchSessionTest, AReplayShowsTheSameCurveAsTheSearch) {
  session_.start(demoRequest("eth"));
  ASSERT_TRUE(finishes());
  const SearchSnapshot live = session_.snapshot();
  const QTemporaryDir folder;
  const QString file = folder.filePath(QStringLiteral("events.jsonl"));
  ASSERT_TRUE(writeFileAtomically(file.toStdString(), eventsOf(live)));
  session_.replay(file);
  const SearchSnapshot replayed = session_.snapshot();
  EXPECT_EQ(replayed.curve, live.curve);
  EXPECT_EQ(replayed.bound, live.bound);
  EXPECT_EQ(replayed.planner, "eth");
  EXPECT_EQ(replayed.counters.evaluated, live.counters.evaluated);
  EXPECT_EQ(replayed.steps.size(), live.steps.size());
  ASSERT_TRUE(session_.result()->ok());
  EXPECT_EQ((*session_.result())->pipelines.size(), live.best->pipelines.size());
}

TEST_F(SearchSessionTest, AReplayOfAnotherFileNamesTheLineThatIsNoEvent) {
  const QTemporaryDir folder;
  const QString file = folder.filePath(QStringLiteral("other.jsonl"));
  ASSERT_TRUE(
      writeFileAtomically(file.toStdString(), "{\"seconds\": 1, \"event\": \"phase\", \"phase\": \"a\"}\n{\"loss\": 2}\n"));
  session_.replay(file);
  ASSERT_FALSE(session_.result()->ok());
  EXPECT_THAT(session_.result()->error().where, HasSubstr("other.jsonl:2"));
}

TEST(SearchCommand, NamesWhatHasANameAndWritesWhatHasNone) {
  const QTemporaryDir folder;
  SearchRequest request = demoRequest("eth");
  request.budget.timeLimit = Seconds{30};
  EXPECT_EQ(searchCommand(request, folder.path()).toStdString(),
            "evenkeel-cli plan --cluster 1x2:cpu@0.5,1x2:cpu@0.25 --model tiny-gpt --global-batch 13 --sequence-length 128 "
            "--precision fp32 "
            "--zero 1 --gradient-sync block --attention unfused --planner eth --time-limit 30 --out plan.json");
  request.problem.cluster.nodes[0].name = "upstairs";
  const QString command = searchCommand(request, folder.path());
  const QString file = command.section(QLatin1Char(' '), 3, 3);
  ASSERT_TRUE(QFile::exists(file)) << command.toStdString();
  EXPECT_EQ(*loadCluster(file.toStdString()), request.problem.cluster);
}

TEST(PlannerOptionsText, IsPairsOrSaysWhatIsWrong) {
  EXPECT_EQ(*plannerOptionsOf(QStringLiteral(" a=1  b=x ")), (PlannerOptions{{"a", "1"}, {"b", "x"}}));
  EXPECT_THAT(plannerOptionsOf(QStringLiteral("fast")).error().text(), HasSubstr("NAME=VALUE"));
  EXPECT_THAT(plannerOptionsOf(QStringLiteral("a=1 a=2")).error().text(), HasSubstr("twice"));
}

TEST(ProgressText, ShowsBoundAndGapAsThePlannerTellsThem) {
  SearchBoard board;
  board.begin("optimal", Seconds{60});
  BoardWriter writer(board);
  writer.onBound({4});
  EXPECT_TRUE(progressText(board.read({1})).contains(QStringLiteral("bound 4\u2009s"))) << "before there is a plan";
  board.addIncumbent({1}, {5}, "branch", nullptr);
  writer.onBound({4.5});
  writer.onBound({4.2});
  EXPECT_TRUE(progressText(board.read({2})).contains(QStringLiteral("gap 10.0\u2009% to the bound 4.50\u2009s")))
      << progressText(board.read({2})).toStdString();
  writer.onBound({5});
  EXPECT_TRUE(progressText(board.read({3})).contains(QStringLiteral("proved to be the fastest")));
}

}  // namespace
}  // namespace evenkeel::gui
