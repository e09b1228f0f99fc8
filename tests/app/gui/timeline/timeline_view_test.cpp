// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/timeline/timeline_view.h"

#include <gtest/gtest.h>

#include <QScrollBar>
#include <QSignalSpy>
#include <QTest>
#include <QWheelEvent>

namespace evenkeel::gui {
namespace {

Timeline stages(int lanes, int microBatches) {
  Timeline timeline;
  for (int lane = 0; lane < lanes; ++lane) {
    timeline.lanes.push_back(
        {"pipeline " + std::to_string(lane / 2) + ", stage " + std::to_string(lane % 2), lane / 2, lane % 2});
    for (int m = 0; m < microBatches; ++m) timeline.spans.push_back({Span::Kind::Forward, lane, m, {m * 1.0}, {m + 1.0}});
  }
  return timeline;
}

class TimelineViewTest : public ::testing::Test {
 protected:
  TimelineViewTest() {
    view_.resize(800, 300);
    view_.setTimeline(stages(4, 100));
    view_.show();
    EXPECT_TRUE(QTest::qWaitForWindowExposed(&view_));
  }
  void wheel(QPoint at, int delta, Qt::KeyboardModifiers modifiers) {
    QWheelEvent event(at, view_.viewport()->mapToGlobal(at), {}, QPoint(0, delta), Qt::NoButton, modifiers, Qt::NoScrollPhase,
                      false);
    QCoreApplication::sendEvent(view_.viewport(), &event);
  }
  TimelineView view_;
};

TEST_F(TimelineViewTest, ControlAndWheelZoomAtTheCursor) {
  const QString before = view_.textAt({600, 40});
  wheel({600, 40}, 120, Qt::ControlModifier);
  EXPECT_FALSE(view_.axis().showsAll());
  EXPECT_EQ(view_.textAt({600, 40}), before);
}

TEST_F(TimelineViewTest, KeysZoomPanAndFit) {
  QTest::keyClick(&view_, Qt::Key_W);
  QTest::keyClick(&view_, Qt::Key_W);
  EXPECT_FALSE(view_.axis().showsAll());
  const Seconds first = view_.axis().first();
  QTest::keyClick(&view_, Qt::Key_D);
  EXPECT_GT(view_.axis().first(), first);
  QTest::keyClick(&view_, Qt::Key_A);
  EXPECT_NEAR(view_.axis().first().value, first.value, 1e-6);
  QTest::keyClick(&view_, Qt::Key_S);
  QTest::keyClick(&view_, Qt::Key_F);
  EXPECT_TRUE(view_.axis().showsAll());
}

TEST_F(TimelineViewTest, DraggingPansAndAClickNamesTheStage) {
  for (int i = 0; i < 6; ++i) QTest::keyClick(&view_, Qt::Key_W);
  const QSignalSpy clicked(&view_, &TimelineView::stageClicked);
  const Seconds first = view_.axis().first();
  QTest::mousePress(view_.viewport(), Qt::LeftButton, {}, {500, 40});
  QTest::mouseMove(view_.viewport(), {400, 40});
  QTest::mouseRelease(view_.viewport(), Qt::LeftButton, {}, {400, 40});
  EXPECT_GT(view_.axis().first(), first);
  EXPECT_EQ(clicked.count(), 0) << "a drag is no click";
  QTest::mouseClick(view_.viewport(), Qt::LeftButton, {}, {400, 60});
  ASSERT_EQ(clicked.count(), 1);
  EXPECT_EQ(clicked[0], (QVariantList{0, 0, 1}));
}

TEST_F(TimelineViewTest, TheScrollBarFollowsAndMovesTheAxis) {
  for (int i = 0; i < 6; ++i) QTest::keyClick(&view_, Qt::Key_W);
  QScrollBar* bar = view_.horizontalScrollBar();
  bar->setValue(bar->maximum());
  EXPECT_NEAR(view_.axis().last().value, 100, 1);
}

TEST_F(TimelineViewTest, ATextStandsUnderTheCursorAndNamesTheRow) {
  EXPECT_TRUE(view_.textAt({400, 40}).startsWith(QStringLiteral("pipeline 0, stage 0: micro-batch")))
      << view_.textAt({400, 40}).toStdString();
  EXPECT_TRUE(view_.textAt({400, 290}).isEmpty());
}

TEST_F(TimelineViewTest, BandsShareOneAxis) {
  std::vector<TimelineView::Band> bands;
  bands.push_back({QStringLiteral("fast"), std::make_shared<const SliceModel>(stages(2, 10))});
  bands.push_back({QStringLiteral("slow"), std::make_shared<const SliceModel>(stages(2, 40))});
  view_.setBands(std::move(bands));
  EXPECT_EQ(view_.axis().total(), Seconds{40});
  view_.setBands({});
  EXPECT_TRUE(view_.textAt({400, 40}).isEmpty());
}

}  // namespace
}  // namespace evenkeel::gui
