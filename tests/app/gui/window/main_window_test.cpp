// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/window/main_window.h"

#include <gtest/gtest.h>

#include <QAction>
#include <QLabel>
#include <QPushButton>
#include <QSettings>
#include <QTemporaryDir>
#include <QTest>

#include "app/gui/start/examples.h"
#include "app/gui/start/start_page.h"
#include "app/gui/widgets/message_line.h"
#include "app/gui/window/mode_bar.h"

namespace evenkeel::gui {
namespace {

/// A page that cannot be entered before there is a node.
class NeedsCluster final : public Page {
 public:
  using Page::Page;
  QString missing() const override { return workspace_.document.project().cluster.nodes.empty() ? QStringLiteral("Draw a cluster first") : QString(); }
};

class WindowTest : public ::testing::Test {
 protected:
  void SetUp() override {
    window_.addPage(Mode::Start,
                    std::make_unique<StartPage>(window_.workspace(),
                                                StartLinks{[this](const QString& path) { window_.openFile(path); },
                                                           [this](Project project) { window_.startFrom(std::move(project)); },
                                                           [this] { return running_; }}));
    window_.addPage(Mode::Plan, std::make_unique<NeedsCluster>(window_.workspace()));
    window_.show();
    ASSERT_TRUE(QTest::qWaitForWindowExposed(&window_));
  }
  QTemporaryDir folder_;
  std::vector<RunningRun> running_;
  ProjectDocument document_{folder_.filePath(QStringLiteral("recovery"))};
  MainWindow window_{document_};
};

TEST_F(WindowTest, AModeIsGreyUntilWhatItNeedsIsThereAndSaysSo) {
  auto* plan = window_.findChild<QAction*>(QStringLiteral("modePlan"));
  ASSERT_NE(plan, nullptr);
  EXPECT_FALSE(plan->isEnabled());
  EXPECT_EQ(plan->toolTip(), QStringLiteral("Draw a cluster first"));
  document_.edit(QStringLiteral("add"), [](Project& p) { p.cluster = *parseClusterShorthand("1x2:cpu"); });
  EXPECT_TRUE(plan->isEnabled());
  QTest::keyClick(&window_, Qt::Key_3, Qt::ControlModifier);
  EXPECT_EQ(window_.findChild<ModeBar*>(QStringLiteral("modeBar"))->mode(), Mode::Plan);
}

TEST_F(WindowTest, WhatAPageLacksIsSaidToWhoAsksForIt) {
  window_.workspace().goTo(Mode::Plan);
  EXPECT_EQ(window_.findChild<MessageLine*>()->text(), QStringLiteral("Draw a cluster first."));
}

TEST_F(WindowTest, AnErrorIsOverWhenThePersonGoesOn) {
  auto* line = window_.findChild<MessageLine*>();
  window_.openFile(folder_.filePath(QStringLiteral("missing.evenkeel")));
  ASSERT_FALSE(line->text().isEmpty());
  window_.enter(Mode::Start);
  EXPECT_TRUE(line->text().isEmpty());
}

TEST_F(WindowTest, SavingAsksBeforeItReplacesWhatAnotherWindowHasSaved) {
  const QString path = folder_.filePath(QStringLiteral("p.evenkeel"));
  ASSERT_TRUE(document_.saveAs(path));
  ProjectDocument other(folder_.filePath(QStringLiteral("recovery")));
  ASSERT_TRUE(other.open(path));
  other.edit(QStringLiteral("batch"), [](Project& p) { p.training.globalBatch = 1001; });
  ASSERT_TRUE(other.saveAs(path));
  document_.edit(QStringLiteral("batch"), [](Project& p) { p.training.globalBatch = 7; });
  QTest::keyClick(&window_, Qt::Key_S, Qt::ControlModifier);
  EXPECT_TRUE(document_.isModified());
  EXPECT_EQ(loadProject(path.toStdString())->training.globalBatch, 1001);
  for (QPushButton* button : window_.findChild<MessageLine*>()->findChildren<QPushButton*>()) {
    if (button->text() == QStringLiteral("Save over it")) button->click();
  }
  EXPECT_EQ(loadProject(path.toStdString())->training.globalBatch, 7);
  EXPECT_FALSE(document_.isModified());
}

TEST_F(WindowTest, UndoAndRedoHaveTheirKeys) {
  document_.edit(QStringLiteral("batch"), [](Project& p) { p.training.globalBatch = 13; });
  QTest::keyClick(&window_, Qt::Key_Z, Qt::ControlModifier);
  EXPECT_FALSE(document_.project().training.globalBatch);
  QTest::keyClick(&window_, Qt::Key_Y, Qt::ControlModifier);
  EXPECT_TRUE(document_.project().training.globalBatch);
  QTest::keyClick(&window_, Qt::Key_Z, Qt::ControlModifier);
  QTest::keyClick(&window_, Qt::Key_Z, Qt::ControlModifier | Qt::ShiftModifier);
  EXPECT_TRUE(document_.project().training.globalBatch);
}

TEST_F(WindowTest, AFileThatCannotBeOpenedIsAMessageAndChangesNothing) {
  window_.openFile(folder_.filePath(QStringLiteral("missing.evenkeel")));
  EXPECT_TRUE(window_.workspace().messages.text().contains(QStringLiteral("no such file")));
}

TEST_F(WindowTest, TheStatusBarSumsTheClusterUp) {
  document_.edit(QStringLiteral("add"), [](Project& p) { p.cluster = *parseClusterShorthand("1x2:A100-80-SXM,1x2:V100-32-SXM2"); });
  const QString text = window_.findChild<QLabel*>(QStringLiteral("summary"))->text();
  EXPECT_TRUE(text.contains(QStringLiteral("4"))) << text.toStdString();
  EXPECT_TRUE(text.contains(QStringLiteral("2 types"))) << text.toStdString();
}

TEST_F(WindowTest, EveryExampleIsAValidProjectAndOneClick) {
  for (std::size_t i = 0; i < examples().size(); ++i) {
    auto* button = window_.findChild<QPushButton*>(QStringLiteral("startExample%1").arg(i));
    ASSERT_NE(button, nullptr);
    QTest::mouseClick(button, Qt::LeftButton);
    EXPECT_TRUE(document_.project().problem()) << i;
    EXPECT_FALSE(document_.isModified());
    EXPECT_TRUE(parseProject(toJson(document_.project()), "example")) << i;
  }
}

TEST_F(WindowTest, StartNamesRunsThatGoOnAndAttaches) {
  int attached = 0;
  running_ = {{QStringLiteral("run 0412, step 8120"), [&] { ++attached; }}};
  window_.page(Mode::Start)->hide();
  window_.page(Mode::Start)->show();
  auto* attach = window_.findChild<QPushButton*>(QStringLiteral("startAttach"));
  ASSERT_NE(attach, nullptr);
  EXPECT_TRUE(attach->text().contains(QStringLiteral("step 8120")));
  QTest::mouseClick(attach, Qt::LeftButton);
  EXPECT_EQ(attached, 1);
}

TEST_F(WindowTest, GeometryIsRemembered) {
  window_.resize(1300, 820);
  window_.close();
  MainWindow next(document_);
  next.restoreLayout();
  EXPECT_EQ(next.size(), QSize(1300, 820));
}

}  // namespace
}  // namespace evenkeel::gui
