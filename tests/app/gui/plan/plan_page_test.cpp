// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/plan/plan_page.h"

#include <gtest/gtest.h>

#include <QClipboard>
#include <QComboBox>
#include <QGuiApplication>
#include <QLabel>
#include <QPushButton>
#include <QSignalSpy>
#include <QTabBar>
#include <QTemporaryDir>
#include <QTest>
#include <QTreeView>

#include "app/gui/plan/plan_view.h"
#include "app/gui/timeline/timeline_view.h"
#include "tests/app/gui/plan/demo.h"

namespace evenkeel::gui {
namespace {

constexpr int kPatience = 20'000;  // ms; only a hanging search takes this long

class PlanPageTest : public ::testing::Test {
 protected:
  PlanPageTest() {
    page_.resize(1200, 720);
    page_.show();
    EXPECT_TRUE(QTest::qWaitForWindowExposed(&page_));
  }
  void load(const Project& project = demoProject()) {
    document_.edit(QStringLiteral("load"), [&](Project& p) { p = project; });
  }
  bool search() {
    QTest::keyClick(&page_, Qt::Key_F5);
    const auto* stop = page_.findChild<QPushButton*>(QStringLiteral("searchStop"));
    return QTest::qWaitFor([&] { return !stop->isEnabled(); }, kPatience) && isDrawn();
  }
  /// A plan is predicted on another thread before it is shown.
  bool isDrawn() {
    return QTest::qWaitFor([this] { return !page_.findChild<PlanView*>()->isBusy(); }, kPatience);
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
  PlanPage page_{workspace_, folder_.filePath(QStringLiteral("commands"))};
};

TEST_F(PlanPageTest, SaysWhatIsMissingAndWhatComesNext) {
  EXPECT_EQ(page_.missing(), QStringLiteral("Draw a cluster and choose a model first"));
  EXPECT_FALSE(child<QPushButton>("searchStart")->isEnabled());
  load();
  EXPECT_TRUE(page_.missing().isEmpty());
  EXPECT_EQ(child<QWidget>("planReason")->accessibleName(), QStringLiteral("No plan yet"));
}

TEST_F(PlanPageTest, ASearchEndsWithAPlanInTheProjectThatUndoTakesBack) {
  load();
  const QSignalSpy commands(&workspace_, &Workspace::commandShown), started(&workspace_, &Workspace::jobStarted),
      ended(&workspace_, &Workspace::jobEnded);
  ASSERT_TRUE(search());
  ASSERT_EQ(document_.project().plans.size(), 1U);
  EXPECT_TRUE(QString::fromStdString(document_.project().plans[0].name).startsWith(QStringLiteral("optimal, ")));
  EXPECT_TRUE(commands[0][0].toString().startsWith(
      QStringLiteral("evenkeel-cli plan --cluster 1x2:cpu@0.5,1x2:cpu@0.25 --model tiny-gpt")));
  EXPECT_EQ(started.count(), 1);
  EXPECT_EQ(ended.count(), 1);
  EXPECT_TRUE(child<QLabel>("planHeadline")->text().contains(QStringLiteral("samples/s")));
  EXPECT_GT(child<QTreeView>("planTable")->model()->rowCount(), 0);
  EXPECT_FALSE(child<QLabel>("planStale")->isVisible());
  document_.undoStack().undo();
  EXPECT_TRUE(document_.project().plans.empty());
  EXPECT_EQ(child<QComboBox>("plans")->count(), 0);
  EXPECT_EQ(child<QWidget>("planReason")->accessibleName(), QStringLiteral("No plan yet"));
}

TEST_F(PlanPageTest, APlanThatIsGoneBeforeAnybodyLooksIsNotDrawn) {
  load();
  ASSERT_TRUE(search());
  child<QTabBar>("planTabs")->setCurrentIndex(2);
  ASSERT_TRUE(isDrawn());
  page_.hide();
  document_.undoStack().undo();
  document_.undoStack().redo();
  ASSERT_TRUE(isDrawn());  // worked out, but nobody looks
  document_.undoStack().undo();
  page_.show();
  ASSERT_TRUE(QTest::qWaitForWindowExposed(&page_));
  EXPECT_EQ(page_.findChild<PlanView*>()->plan(), nullptr);
  EXPECT_TRUE(child<QWidget>("planReason")->isVisible());
}

TEST_F(PlanPageTest, ALaterEditMarksThePlanAsStaleUntilItIsUndone) {
  load();
  ASSERT_TRUE(search());
  document_.edit(QStringLiteral("batch"), [](Project& p) { p.training.globalBatch = 14; });
  EXPECT_TRUE(child<QLabel>("planStale")->isVisible());
  document_.undoStack().undo();
  EXPECT_FALSE(child<QLabel>("planStale")->isVisible());
}

TEST_F(PlanPageTest, WhatDoesNotFitIsSaidInWordsAndNothingIsKept) {
  Project project = demoProject();
  project.model = *modelFromArgument("gpt3-175b");
  load(project);
  ASSERT_TRUE(search());
  EXPECT_TRUE(document_.project().plans.empty());
  auto* reason = child<QWidget>("planReason");
  EXPECT_EQ(reason->accessibleName(), QStringLiteral("No plan fits"));
  EXPECT_TRUE(reason->accessibleDescription().contains(QStringLiteral("lacks"))) << reason->accessibleDescription().toStdString();
}

TEST_F(PlanPageTest, AReasonGoesWhenWhatItWasAboutIsEdited) {
  Project project = demoProject();
  project.model = *modelFromArgument("gpt3-175b");
  load(project);
  ASSERT_TRUE(search());
  load();
  EXPECT_EQ(child<QWidget>("planReason")->accessibleName(), QStringLiteral("No plan yet"));
}

TEST_F(PlanPageTest, RemovingAPlanIsAnEditThatUndoTakesBack) {
  load();
  ASSERT_TRUE(search());
  QTest::mouseClick(child<QPushButton>("planRemove"), Qt::LeftButton);
  EXPECT_TRUE(document_.project().plans.empty());
  document_.undoStack().undo();
  EXPECT_EQ(document_.project().plans.size(), 1U);
  EXPECT_EQ(child<QComboBox>("plans")->count(), 1);
}

TEST_F(PlanPageTest, AnotherPartOfTheProjectLeavesThePlanAsItIsShown) {
  load();
  ASSERT_TRUE(search());
  const Plan* before = page_.findChild<PlanView*>()->plan().get();
  document_.edit(QStringLiteral("move"), [](Project& p) { p.layout["cpu-0"] = {20, 40}; });
  document_.edit(QStringLiteral("zero"), [](Project& p) { p.training.globalBatch = 17; });
  EXPECT_EQ(page_.findChild<PlanView*>()->plan().get(), before);
}

TEST_F(PlanPageTest, SelectingAStageSelectsItsMachinesInAllViews) {
  load();
  ASSERT_TRUE(search());
  auto* table = child<QTreeView>("planTable");
  const QModelIndex stage = table->model()->index(0, 0, table->model()->index(0, 0));
  QTest::mouseClick(table->viewport(), Qt::LeftButton, {}, table->visualRect(stage).center());
  ASSERT_TRUE(selection_.stage());
  EXPECT_EQ(selection_.stage()->plan, document_.project().plans[0].name);
  const Plan& plan = document_.project().plans[0].plan;
  const DeviceId device = plan.pipelines[0].stages[0].devices[0];
  EXPECT_TRUE(selection_.contains(plan.cluster.nodes[static_cast<std::size_t>(device.node)].name));
  selection_.clear();
  EXPECT_TRUE(table->selectionModel()->selectedRows().isEmpty());
}

TEST_F(PlanPageTest, ControlCCopiesTheTable) {
  load();
  ASSERT_TRUE(search());
  auto* table = child<QTreeView>("planTable");
  table->setFocus();
  QTest::keyClick(table, Qt::Key_C, Qt::ControlModifier);
  const QString text = QGuiApplication::clipboard()->text();
  EXPECT_TRUE(text.contains(QStringLiteral("Pipelines 0 to 1, each\t"))) << text.toStdString();
}

TEST_F(PlanPageTest, TheTimelineIsMadeWhenItIsLookedAt) {
  load();
  ASSERT_TRUE(search());
  auto* timeline = child<TimelineView>("timeline");
  EXPECT_TRUE(timeline->textAt({4, 30}).isEmpty());
  child<QTabBar>("planTabs")->setCurrentIndex(2);
  ASSERT_TRUE(isDrawn());
  EXPECT_EQ(timeline->textAt({4, 30}), QStringLiteral("pipeline 0, stage 0"));
}

TEST_F(PlanPageTest, AReplayIsShownLikeASearch) {
  load();
  ASSERT_TRUE(search());
  const QString finder = child<QLabel>("searchFinder")->text(), headline = child<QLabel>("planHeadline")->text();
  SearchSession live;
  live.start(demoRequest("optimal"));
  ASSERT_TRUE(QTest::qWaitFor([&] { return live.result().has_value(); }, kPatience));
  const QString file = folder_.filePath(QStringLiteral("events.jsonl"));
  ASSERT_TRUE(writeFileAtomically(file.toStdString(), eventsOf(live.snapshot())));
  document_.undoStack().undo();
  page_.replay(file);
  ASSERT_TRUE(isDrawn());
  EXPECT_EQ(child<QLabel>("searchFinder")->text().section(QStringLiteral("after"), 0, 0),
            finder.section(QStringLiteral("after"), 0, 0));
  EXPECT_EQ(child<QLabel>("planHeadline")->text(), headline);
}

TEST_F(PlanPageTest, FitsTheSmallestWindow) {
  load();
  ASSERT_TRUE(search());
  EXPECT_LE(page_.minimumSizeHint().width(), 1160);
  EXPECT_LE(page_.minimumSizeHint().height(), 680);
}

TEST_F(PlanPageTest, AnotherProjectTakesItsPlansWithIt) {
  load();
  ASSERT_TRUE(search());
  document_.startNew();
  EXPECT_EQ(child<QComboBox>("plans")->count(), 0);
  EXPECT_FALSE(page_.missing().isEmpty());
}

TEST(FreshPlanName, DiffersFromThoseThatAreThere) {
  Project project;
  const std::string first = freshPlanName(project, "eth");
  project.plans.push_back({first, {}});
  const std::string second = freshPlanName(project, "eth");
  EXPECT_NE(second, first);
  project.plans.push_back({second, {}});
  const std::string third = freshPlanName(project, "eth");
  EXPECT_NE(third, first);
  EXPECT_NE(third, second);
}

}  // namespace
}  // namespace evenkeel::gui
