// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/plot/curve_plot.h"

#include <gtest/gtest.h>

#include <QApplication>
#include <QImage>
#include <QLabel>
#include <QTest>
#include <algorithm>
#include <cmath>
#include <limits>

#include "app/gui/theme/theme.h"

namespace evenkeel::gui {
namespace {

class CurvePlotTest : public ::testing::Test {
 protected:
  CurvePlotTest() {
    plot_.resize(800, 300);
    plot_.show();
    EXPECT_TRUE(QTest::qWaitForWindowExposed(&plot_));
  }
  ~CurvePlotTest() override { applyTheme(*qApp, ColourScheme::Light); }
  QWidget* canvas() { return plot_.findChild<QWidget*>(QStringLiteral("curveCanvas")); }
  QString counts() { return plot_.findChild<QLabel*>(QStringLiteral("curveCounts"))->text(); }
  CurvePlot plot_{{.x = QStringLiteral("step"), .y = QStringLiteral("loss")}};
};

TEST_F(CurvePlotTest, ShowsAppendedValuesSoon) {
  for (int step = 1; step <= 50; ++step) plot_.append(step, 3.0 / step);
  EXPECT_TRUE(QTest::qWaitFor([&] { return plot_.drawn().size() == 50; }));
  EXPECT_EQ(plot_.points().size(), 50U);
  plot_.clear();
  EXPECT_TRUE(QTest::qWaitFor([&] { return plot_.drawn().empty(); }));
}

// tensorboard #6796: all data is kept, and a spike is in the picture.
TEST_F(CurvePlotTest, DrawsTheOneSpikeOfAHundredThousandValues) {
  for (int step = 1; step <= 100'000; ++step) plot_.append(step, step == 54'321 ? 9 : 1);
  plot_.draw();
  EXPECT_EQ(plot_.points().size(), 100'000U);
  EXPECT_LT(plot_.drawn().size(), 2000U);
  EXPECT_EQ(std::ranges::max(plot_.drawn(), {}, &CurvePoint::y).y, 9);
}

// wandb #2202: NaN and infinity are marked and counted, and the axis fits the finite values.
TEST_F(CurvePlotTest, CountsValuesThatAreNotFinite) {
  for (int step = 1; step <= 10; ++step) plot_.append(step, 2);
  plot_.append(11, std::numeric_limits<double>::quiet_NaN());
  plot_.append(12, std::numeric_limits<double>::infinity());
  plot_.append(13, 2.5);
  plot_.draw();
  EXPECT_EQ(plot_.notFiniteCount(), 2U);
  EXPECT_TRUE(counts().contains(QStringLiteral("infinite: 2"))) << counts().toStdString();
  plot_.clear();
  plot_.draw();
  EXPECT_EQ(counts(), QString());
}

// JKQtPlotter PR #33: values <= 0 on a log axis.
TEST_F(CurvePlotTest, CountsValuesThatALogAxisCannotShow) {
  for (int step = 1; step <= 20; ++step) plot_.append(step, step == 7 ? 0.0 : step == 8 ? -1.0 : 1.0 / step);
  plot_.draw();
  EXPECT_EQ(plot_.hiddenByLogCount(), 0U);
  EXPECT_EQ(counts(), QString());
  plot_.setLogAxis(true);
  plot_.draw();
  EXPECT_EQ(plot_.hiddenByLogCount(), 2U);
  EXPECT_TRUE(counts().contains(QStringLiteral("log axis: 2"))) << counts().toStdString();
  EXPECT_TRUE(std::ranges::none_of(plot_.drawn(), [](const CurvePoint& point) { return point.y <= 0; }));
}

TEST_F(CurvePlotTest, FollowsTheEndUntilAPersonLooksElsewhere) {
  for (int step = 1; step <= 1000; ++step) plot_.append(step, step);
  plot_.draw();
  EXPECT_TRUE(plot_.isFollowing());
  plot_.setVisibleRange(100, 200);
  plot_.append(1001, 1001);
  plot_.draw();
  EXPECT_FALSE(plot_.isFollowing());
  EXPECT_LE(plot_.drawn().back().x, 201);
  QTest::mouseDClick(canvas(), Qt::LeftButton, {}, QPoint(400, 150));
  plot_.draw();
  EXPECT_TRUE(plot_.isFollowing());
  EXPECT_EQ(plot_.drawn().back().x, 1001);
}

TEST_F(CurvePlotTest, ShowsAnotherCurveBesideTheFirst) {
  for (int i = 1; i <= 40; ++i) plot_.append(i, 5.0);
  plot_.appendOther(20, 9.0);
  plot_.appendOther(40, 8.0);
  plot_.draw();
  EXPECT_EQ(plot_.otherPoints().size(), 2U);
  const auto seen = [&] {
    const QImage picture = plot_.grab().toImage();
    const QRgb colour = colours(plot_.palette()).optimizer.rgb();
    int pixels = 0;
    for (int y = 0; y < picture.height(); ++y) {
      for (int x = 0; x < picture.width(); ++x) pixels += picture.pixel(x, y) == colour ? 1 : 0;
    }
    return pixels;
  };
  EXPECT_GT(seen(), 20) << "the axis must reach up to it";
  plot_.clear();
  plot_.draw();
  EXPECT_TRUE(plot_.otherPoints().empty());
  EXPECT_EQ(seen(), 0);
}

TEST_F(CurvePlotTest, SaysTheValuesUnderTheMouse) {
  plot_.setSmoothing(0.5);
  for (int step = 1; step <= 3; ++step) plot_.append(step, 4.0 - step);
  plot_.draw();
  EXPECT_EQ(plot_.crosshairText(), QString());
  QTest::mouseMove(canvas(), QPoint(canvas()->width() - 20, 150));
  EXPECT_TRUE(QTest::qWaitFor([&] { return !plot_.crosshairText().isEmpty(); }));
  EXPECT_TRUE(plot_.crosshairText().startsWith(QStringLiteral("step 3   loss 1"))) << plot_.crosshairText().toStdString();
  EXPECT_TRUE(plot_.crosshairText().contains(QStringLiteral("smoothed")));
}

TEST_F(CurvePlotTest, TakesItsColoursFromThePalette) {
  plot_.append(1, 1);
  plot_.append(2, 1);
  const auto background = [&] { return qGray(plot_.grab().toImage().pixel(plot_.width() / 2, 20)); };
  plot_.draw();
  EXPECT_GT(background(), 200);
  applyTheme(*qApp, ColourScheme::Dark);
  EXPECT_TRUE(QTest::qWaitFor([&] { return background() < 90; }));
}

TEST_F(CurvePlotTest, KeepsTheReferenceLineInSight) {
  for (int step = 1; step <= 5; ++step) plot_.append(step, 10);
  plot_.draw();
  const QImage without = plot_.grab().toImage();
  plot_.setReference(20, QStringLiteral("predicted 20"));
  plot_.draw();
  EXPECT_NE(plot_.grab().toImage(), without);
  plot_.setReference({});
  plot_.draw();
  EXPECT_EQ(plot_.grab().toImage(), without);
}

}  // namespace
}  // namespace evenkeel::gui
