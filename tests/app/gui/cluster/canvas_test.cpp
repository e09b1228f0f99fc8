// SPDX-License-Identifier: GPL-3.0-or-later
#include <gmock/gmock.h>

#include <QAction>
#include <QClipboard>
#include <QDragEnterEvent>
#include <QGuiApplication>
#include <QLabel>
#include <QLineEdit>
#include <QMimeData>
#include <QPushButton>
#include <QWheelEvent>
#include <random>

#include "tests/app/gui/cluster/cluster_page_fixture.h"

namespace evenkeel::gui {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

void drop(QWidget* target, const QString& words, QPoint at) {
  QMimeData data;
  data.setData(kMachineMime, words.toUtf8());
  QDragEnterEvent enter(at, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  QCoreApplication::sendEvent(target, &enter);
  EXPECT_TRUE(enter.isAccepted());
  QDropEvent event(QPointF(at), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  QCoreApplication::sendEvent(target, &event);
}

TEST_F(ClusterPageTest, ADropOfThePaletteMakesAMachineThereAndSelectsIt) {
  drop(canvas_.viewport(), QStringLiteral("4 x V100-32-SXM2"), {500, 300});
  ASSERT_EQ(cluster().nodes.size(), 1u);
  EXPECT_EQ(cluster().nodes.front().devices.size(), 4u);
  EXPECT_THAT(selection_.items(), ElementsAre("node-0"));
  drop(canvas_.viewport(), QStringLiteral("switch"), {300, 100});
  EXPECT_EQ(cluster().switches.size(), 1u);
  EXPECT_TRUE(canvas_.drawing().itemsIn(QRectF(canvas_.mapToScene(300, 100), QSizeF(1, 1))).contains("switch-0"));
}

TEST_F(ClusterPageTest, AnUnknownTypeIsAMessageAndNoMachine) {
  drop(canvas_.viewport(), QStringLiteral("4 x V101"), {500, 300});
  EXPECT_TRUE(cluster().nodes.empty());
  EXPECT_TRUE(messages_.text().contains(QStringLiteral("not a known device type"))) << messages_.text().toStdString();
}

TEST_F(ClusterPageTest, ADragMovesAlongTheGridAsOneStepAndUndoGivesTheSameBytes) {
  draw("3x2:cpu");
  const std::string before = bytes();
  const int steps = document_.undoStack().count();
  const CanvasPoint home = shownLayout(document_.project()).at("cpu-0");
  drag(pointOf("cpu-0"), pointOf("cpu-0") + QPoint(53, 81));
  EXPECT_EQ(document_.undoStack().count(), steps + 1);
  const CanvasPoint moved = document_.project().layout.at("cpu-0");
  EXPECT_EQ(moved, snapped(moved));
  EXPECT_NEAR(moved.x - home.x, 53 / canvas_.zoom(), kGrid);
  document_.undoStack().undo();
  EXPECT_EQ(bytes(), before);
  EXPECT_EQ(canvas_.drawing().box("cpu-0")->pos(), QPointF(home.x, home.y));
}

TEST_F(ClusterPageTest, EscapeInADragPutsEverythingBackAndIsNoStep) {
  draw("3x2:cpu");
  const int steps = document_.undoStack().count();
  const QPointF home = canvas_.drawing().box("cpu-1")->pos();
  const QPoint from = pointOf("cpu-1");
  press(from);
  moveTo(from + QPoint(30, 30));
  moveTo(from + QPoint(90, 60));
  EXPECT_NE(canvas_.drawing().box("cpu-1")->pos(), home);
  key(Qt::Key_Escape);
  release(from + QPoint(90, 60));
  EXPECT_EQ(canvas_.drawing().box("cpu-1")->pos(), home);
  EXPECT_EQ(document_.undoStack().count(), steps);
}

TEST_F(ClusterPageTest, ARubberBandSelectsWhatItTouchesAndShiftAdds) {
  draw("3x2:cpu");
  selection_.clear();
  const QRect a =
      canvas_.mapFromScene(QRectF(canvas_.drawing().box("cpu-0")->pos(), QSizeF(kMachineWidth, kMachineHeight))).boundingRect();
  drag(a.topLeft() - QPoint(15, 15), a.center());
  EXPECT_THAT(selection_.items(), ElementsAre("cpu-0"));
  click(pointOf("cpu-2"), Qt::ShiftModifier);
  EXPECT_THAT(selection_.items(), ElementsAre("cpu-0", "cpu-2"));
  click(pointOf("cpu-2"));
  EXPECT_THAT(selection_.items(), ElementsAre("cpu-2"));
  click(a.topLeft() - QPoint(15, 15));
  EXPECT_TRUE(selection_.items().empty());
}

TEST_F(ClusterPageTest, TheKeysOfTheCanvasEdit) {
  key(Qt::Key_N);
  key(Qt::Key_N);
  ASSERT_EQ(cluster().nodes.size(), 2u);
  key(Qt::Key_D, Qt::ControlModifier);
  EXPECT_EQ(cluster().nodes.back().name, "node-2");
  key(Qt::Key_A, Qt::ControlModifier);
  EXPECT_EQ(selection_.items().size(), 3u);
  const CanvasPoint home = document_.project().layout.at("node-0");
  key(Qt::Key_Right);
  key(Qt::Key_Down, Qt::ShiftModifier);
  EXPECT_EQ(document_.project().layout.at("node-0"), (CanvasPoint{home.x + kGrid, home.y + 10 * kGrid}));
  key(Qt::Key_C, Qt::ControlModifier);
  key(Qt::Key_V, Qt::ControlModifier);
  EXPECT_EQ(cluster().nodes.size(), 6u);
  key(Qt::Key_X, Qt::ControlModifier);
  EXPECT_EQ(cluster().nodes.size(), 3u);
  key(Qt::Key_A, Qt::ControlModifier);
  key(Qt::Key_Delete);
  EXPECT_TRUE(cluster().nodes.empty());
  QGuiApplication::clipboard()->setText(QStringLiteral("2x8:A100-80-SXM"));
  key(Qt::Key_V, Qt::ControlModifier);
  EXPECT_EQ(cluster().deviceCount(), 16);
}

TEST_F(ClusterPageTest, TheLinkToolLinksTwoClicksAndEscapeLeavesIt) {
  draw("3x2:cpu");
  key(Qt::Key_L);
  EXPECT_EQ(canvas_.tool(), Canvas::Tool::Link);
  click(pointOf("cpu-0"));
  click(pointOf("cpu-1"));
  ASSERT_EQ(cluster().links.size(), 1u);
  EXPECT_THAT(selection_.items(), ElementsAre("cpu-0|cpu-1"));
  click(pointOf("cpu-2"));
  key(Qt::Key_Escape);
  click(pointOf("cpu-1"));
  EXPECT_EQ(cluster().links.size(), 1u) << "Esc let go of the first end";
  key(Qt::Key_Escape);
  key(Qt::Key_Escape);
  EXPECT_EQ(canvas_.tool(), Canvas::Tool::Select);
  const QLineF line(canvas_.drawing().box("cpu-0")->centre(), canvas_.drawing().box("cpu-1")->centre());
  click(canvas_.mapFromScene(line.center()));
  EXPECT_THAT(selection_.items(), ElementsAre("cpu-0|cpu-1"));
  key(Qt::Key_Delete);
  EXPECT_TRUE(cluster().links.empty());
}

TEST_F(ClusterPageTest, F2RenamesInPlaceAndATakenNameIsAMessage) {
  draw("2x2:cpu");
  const auto rename = [&](const char* to) {
    selection_.setItems({"cpu-0"});
    key(Qt::Key_F2);
    auto* edit = canvas_.findChild<QLineEdit*>(QStringLiteral("nameEdit"));
    ASSERT_NE(edit, nullptr);
    edit->selectAll();
    QTest::keyClicks(edit, QString::fromLatin1(to));
    QTest::keyClick(edit, Qt::Key_Return);
    QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
  };
  rename("cpu-1");
  EXPECT_TRUE(messages_.text().contains(QStringLiteral("name of another"))) << messages_.text().toStdString();
  rename("big");
  EXPECT_EQ(cluster().nodes.front().name, "big");
  EXPECT_THAT(selection_.items(), ElementsAre("big"));
}

TEST_F(ClusterPageTest, CtrlWheelZoomsAtTheCursor) {
  draw("3x2:cpu");
  const QPoint at(200, 150);
  const QPointF under = canvas_.mapToScene(at);
  QWheelEvent wheel(QPointF(at), canvas_.viewport()->mapToGlobal(QPointF(at)), {}, {0, 120}, Qt::NoButton, Qt::ControlModifier,
                    Qt::NoScrollPhase, false);
  const double before = canvas_.zoom();
  QCoreApplication::sendEvent(canvas_.viewport(), &wheel);
  EXPECT_GT(canvas_.zoom(), before);
  EXPECT_NEAR(canvas_.mapToScene(at).x(), under.x(), 2);
  EXPECT_NEAR(canvas_.mapToScene(at).y(), under.y(), 2);
  key(Qt::Key_0, Qt::ControlModifier);
  EXPECT_EQ(canvas_.zoom(), 1);
}

TEST_F(ClusterPageTest, FromFarMachinesAreBlocksThatCanBeClicked) {
  draw("2x2:cpu,1x2:T4");
  document_.edit(QStringLiteral("link"), [](Project& project) { project.cluster.links.push_back({0, 2, {fromGbs(12.5), fromMicroseconds(5)}}); });
  const auto pictureAt = [&](double zoom) {
    canvas_.zoomTo(zoom, canvas_.viewport()->rect().center());
    canvas_.centerOn(canvas_.drawing().boundsOf({}).center());
    return canvas_.viewport()->grab().toImage();
  };
  const auto colourOf = [&](const std::string& box) { return canvas_.drawing().box(box)->block(canvas_.palette()).inside; };
  selection_.clear();
  QImage far = pictureAt(0.2);
  EXPECT_EQ(far.pixelColor(pointOf("cpu-0")), colourOf("cpu-0"));
  EXPECT_EQ(far.pixelColor(pointOf("t4-0")), colourOf("t4-0"));
  EXPECT_NE(colourOf("cpu-0"), colourOf("t4-0"));
  click(pointOf("cpu-1"));
  EXPECT_THAT(selection_.items(), ElementsAre("cpu-1"));
  far = pictureAt(0.2);
  EXPECT_EQ(far.pixelColor(pointOf("cpu-1")), colourOf("cpu-1")) << "marked";
  EXPECT_NE(colourOf("cpu-1"), colourOf("cpu-0"));
  // a drag is seen while it lasts
  const QPoint from = pointOf("t4-0"), to = from + QPoint(0, 60);
  press(from);
  moveTo(from + QPoint(0, 30));
  moveTo(to);
  EXPECT_EQ(canvas_.viewport()->grab().toImage().pixelColor(to), colourOf("t4-0"));
  release(to);
  // near again, items paint themselves: the inside of a card is not its block's colour
  const QImage near = pictureAt(1);
  EXPECT_NE(near.pixelColor(pointOf("cpu-0") + QPoint(0, 12)), colourOf("cpu-0"));
}

TEST_F(ClusterPageTest, AnEmptyDrawingOffersTheNextStep) {
  auto* empty = page_.findChild<QWidget*>(QStringLiteral("emptyCluster"));
  EXPECT_TRUE(empty->isVisible());
  const auto buttons = empty->findChildren<QPushButton*>();
  ASSERT_EQ(buttons.size(), 3);
  buttons.back()->click();
  EXPECT_EQ(cluster().deviceCount(), 4);
  EXPECT_FALSE(empty->isVisible());
}

TEST_F(ClusterPageTest, AMachineThatNoSwitchReachesIsSaid) {
  draw("2x2:cpu");
  auto* line = page_.findChild<QLabel*>(QStringLiteral("clusterProblemText"));
  EXPECT_FALSE(line->isVisible());
  document_.edit(QStringLiteral("switch"), [](Project& project) {
    const std::string hub = addSwitch(project, {});
    (void)connectItems(project, hub, "cpu-0");
  });
  EXPECT_TRUE(line->isVisible());
  EXPECT_TRUE(line->text().contains(QStringLiteral("cpu-1"))) << line->text().toStdString();
  page_.findChild<QPushButton*>(QStringLiteral("joinUnreached"))->click();
  EXPECT_FALSE(line->isVisible());
  EXPECT_THAT(cluster().switches.front().members, ElementsAre("cpu-0", "cpu-1"));
}

TEST_F(ClusterPageTest, ADropOnTheTextOfTheEmptyDrawingReachesTheCanvas) {
  auto* empty = page_.findChild<QWidget*>(QStringLiteral("emptyCluster"));
  drop(empty, QStringLiteral("2 x T4"), {20, 20});
  ASSERT_EQ(cluster().nodes.size(), 1u);
  const QPoint at = canvas_.viewport()->mapFrom(&page_, empty->mapTo(&page_, QPoint(20, 20)));
  EXPECT_EQ(CanvasScene::nameOf(canvas_.itemAt(at)), "node-0");
}

TEST_F(ClusterPageTest, TheLegendNamesTheColours) {
  draw("2x8:A100-80-SXM,1x4:T4");
  const QString legend = page_.findChild<QLabel*>(QStringLiteral("clusterLegend"))->text();
  EXPECT_TRUE(legend.contains(QStringLiteral("16&nbsp;×&nbsp;A100-80-SXM"))) << legend.toStdString();
  EXPECT_TRUE(legend.contains(QStringLiteral("4&nbsp;×&nbsp;T4"))) << legend.toStdString();
}

TEST_F(ClusterPageTest, WhatIsGoneIsNoLongerSelected) {
  draw("2x2:cpu");
  selection_.setItems({"cpu-0", "cpu-1"});
  document_.undoStack().undo();
  EXPECT_TRUE(selection_.items().empty());
}

/// Some hundred random actions of a person; 10,000 in the full test run.
TEST_F(ClusterPageTest, AfterRandomActionsUndoToTheStartGivesTheFirstBytes) {
  const std::string first = bytes();
  std::mt19937 random(7);
  const auto pick = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  const auto somewhere = [&] { return QPoint(pick(canvas_.viewport()->width()), pick(canvas_.viewport()->height())); };
  const auto someBox = [&]() -> QPoint {
    const auto& boxes = canvas_.drawing().boxes();
    return boxes.empty() ? somewhere() : pointOf(std::next(boxes.begin(), pick(static_cast<int>(boxes.size())))->first);
  };
  const auto trigger = [&](const char* action) { page_.findChild<QAction*>(QString::fromLatin1(action))->trigger(); };
  QGuiApplication::clipboard()->setText(QStringLiteral("1x2:cpu@0.5,1x4:T4"));
  const int actions = qEnvironmentVariableIntValue("EVENKEEL_FULL") != 0 ? 10'000 : 400;
  for (int i = 0; i < actions; ++i) {
    switch (pick(14)) {
      case 0: key(Qt::Key_N); break;
      case 1: drop(canvas_.viewport(), QStringLiteral("2 x T4"), somewhere()); break;
      case 2: trigger("newSwitch"); break;
      case 3: drag(someBox(), somewhere()); break;
      case 4: drag(somewhere(), somewhere()); break;
      case 5: {
        canvas_.setTool(Canvas::Tool::Link);
        click(someBox());
        click(someBox());
        canvas_.setTool(Canvas::Tool::Select);
        break;
      }
      case 6: key(Qt::Key_Delete); break;
      case 7:
        if (cluster().nodes.size() < 40) key(Qt::Key_D, Qt::ControlModifier);
        break;
      case 8: key(Qt::Key_Right, pick(2) == 0 ? Qt::ShiftModifier : Qt::NoModifier); break;
      case 9:
        if (cluster().nodes.size() < 40) trigger("pasteItems");
        break;
      case 10:
        if (pick(4) == 0) trigger("arrangeItems");
        break;
      case 11: document_.undoStack().undo(); break;
      case 12: document_.undoStack().redo(); break;
      default: click(someBox(), pick(2) == 0 ? Qt::ShiftModifier : Qt::NoModifier); break;
    }
    ASSERT_EQ(canvas_.drawing().boxes().size(), cluster().nodes.size() + cluster().switches.size()) << "action " << i;
    if (i % 50 == 0) {
      ASSERT_TRUE(parseProject(toJson(document_.project()), "project")) << "action " << i;
    }
  }
  const std::string last = bytes();
  const int steps = document_.undoStack().index();
  document_.undoStack().setIndex(0);
  EXPECT_EQ(bytes(), first);
  document_.undoStack().setIndex(steps);
  EXPECT_EQ(bytes(), last);
}

}  // namespace
}  // namespace evenkeel::gui
