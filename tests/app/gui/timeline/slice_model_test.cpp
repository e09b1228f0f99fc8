// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/timeline/slice_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/gui/timeline/slice_text.h"

namespace evenkeel::gui {
namespace {

using ::testing::ElementsAre;
using Kind = Span::Kind;
using Track = SliceModel::Track;

TimeAxis axisOf(double total, double width) {
  TimeAxis axis;
  axis.setTotal({total});
  axis.setWidth(width);
  return axis;
}

TEST(TimeAxis, TurnsTimesIntoPixelsAndBack) {
  TimeAxis axis = axisOf(10, 500);
  EXPECT_DOUBLE_EQ(axis.xOf({2}), 100);
  axis.show({4}, {6});
  for (const double x : {0.0, 123.0, 500.0}) EXPECT_NEAR(axis.xOf(axis.timeAt(x)), x, 1e-9);
  EXPECT_DOUBLE_EQ(axis.timeAt(250).value, 5);
}

TEST(TimeAxis, ZoomKeepsWhatIsUnderTheCursorInPlace) {
  TimeAxis axis = axisOf(10, 500);
  const Seconds under = axis.timeAt(400);
  axis.zoom(3, 400);
  EXPECT_NEAR(axis.xOf(under), 400, 1e-9);
  EXPECT_NEAR((axis.last() - axis.first()).value, 10.0 / 3, 1e-12);
}

TEST(TimeAxis, NeverLeavesItsRange) {
  TimeAxis axis = axisOf(10, 500);
  axis.pan(-100);
  EXPECT_TRUE(axis.showsAll());
  axis.zoom(4, 0);
  axis.pan(1e9);
  EXPECT_DOUBLE_EQ(axis.last().value, 10);
  EXPECT_DOUBLE_EQ(axis.first().value, 7.5);
  axis.zoom(1e-9, 10);
  EXPECT_TRUE(axis.showsAll());
  axis.zoom(1e30, 250);
  EXPECT_LT(axis.first(), axis.last());
}

TEST(TimeAxis, StaysWhereItIsWhenTheTotalChanges) {
  TimeAxis axis = axisOf(10, 500);
  axis.setTotal({20});
  EXPECT_TRUE(axis.showsAll());
  axis.show({4}, {6});
  axis.setTotal({12});
  EXPECT_DOUBLE_EQ(axis.first().value, 4);
  EXPECT_DOUBLE_EQ(axis.last().value, 6);
}

TEST(TimeAxis, TicksAreRoundAndInside) {
  TimeAxis axis = axisOf(1, 500);
  EXPECT_THAT(axis.ticks(100), ElementsAre(Seconds{0}, Seconds{0.2}, Seconds{0.4}, Seconds{0.2 * 3}, Seconds{0.8}, Seconds{1}));
  axis.show({0.25}, {0.65});
  for (const Seconds tick : axis.ticks(50)) EXPECT_TRUE(tick >= axis.first() && tick <= axis.last()) << tick.value;
}

Timeline twoLanes() {
  return {{{"pipeline 0, stage 0", 0, 0}, {"pipeline 0, stage 1", 0, 1}},
          {{Kind::Forward, 0, 0, {0}, {2}},
           {Kind::Send, 0, 0, {2}, {3}},
           {Kind::Wait, 0, -1, {2}, {6}, 1},
           {Kind::Backward, 0, 0, {6}, {9}},
           {Kind::Forward, 1, 0, {3}, {4}}}};
}

std::vector<PaintedSlice> painted(const SliceModel& model, std::size_t lane, Track track, const TimeAxis& axis) {
  std::vector<PaintedSlice> result;
  model.visible(lane, track, axis, result);
  return result;
}

TEST(SliceModel, KeepsSendsOnATrackOfTheirOwn) {
  const SliceModel model(twoLanes());
  EXPECT_EQ(model.sliceCount(), 5U);
  EXPECT_EQ(model.end(), Seconds{9});
  const TimeAxis axis = axisOf(9, 90);
  EXPECT_EQ(painted(model, 0, Track::Work, axis).size(), 3U);
  const auto sends = painted(model, 0, Track::Sends, axis);
  ASSERT_EQ(sends.size(), 1U);
  EXPECT_DOUBLE_EQ(sends[0].x, 20);
  EXPECT_DOUBLE_EQ(sends[0].width, 10);
}

TEST(SliceModel, CutsAndLeavesOutWhatIsOutside) {
  const SliceModel model(twoLanes());
  TimeAxis axis = axisOf(9, 90);
  axis.show({1}, {2});
  const auto shown = painted(model, 0, Track::Work, axis);
  ASSERT_FALSE(shown.empty());
  EXPECT_DOUBLE_EQ(shown[0].x, 0);
  EXPECT_DOUBLE_EQ(shown[0].width, 90);
  EXPECT_EQ(shown[0].kind, Kind::Forward);
  EXPECT_TRUE(painted(model, 1, Track::Work, axis).empty());
}

/// One lane with `count` slices a millisecond long, every fourth backward.
Timeline manySlices(int count) {
  Timeline timeline{{{"pipeline 0, stage 0", 0, 0}}, {}};
  for (int i = 0; i < count; ++i)
    timeline.spans.push_back({i % 4 == 3 ? Kind::Backward : Kind::Forward, 0, i, {i * 1e-3}, {(i + 1) * 1e-3}});
  return timeline;
}

TEST(SliceModel, MergesWhatIsUnderAPixelIntoWhatTakesMostOfIt) {
  const SliceModel model(manySlices(100'000));
  const auto shown = painted(model, 0, Track::Work, axisOf(100, 200));
  ASSERT_EQ(shown.size(), 1U) << "every pixel is mostly forward";
  EXPECT_TRUE(shown[0].isMerged);
  EXPECT_EQ(shown[0].kind, Kind::Forward);
  EXPECT_DOUBLE_EQ(shown[0].x, 0);
  EXPECT_NEAR(shown[0].width, 200, 1);
}

TEST(SliceModel, PaintsAtMostTwoSlicesAPixel) {
  const SliceModel model(manySlices(5'000));
  for (const double first : {0.0, 1.0, 2.5}) {
    for (const double length : {0.002, 0.2, 2.5}) {
      TimeAxis axis = axisOf(5, 300);
      axis.show({first}, {first + length});
      EXPECT_LE(painted(model, 0, Track::Work, axis).size(), 600U);
    }
  }
}

TEST(SliceModel, FindsTheSliceUnderTheCursor) {
  const SliceModel model(twoLanes());
  EXPECT_EQ(model.at(0, Track::Work, {1})->kind, Kind::Forward);
  EXPECT_EQ(model.at(0, Track::Work, {7})->kind, Kind::Backward);
  EXPECT_EQ(model.at(0, Track::Sends, {1}), nullptr);
  EXPECT_EQ(model.at(1, Track::Work, {2.5}), nullptr);
  EXPECT_EQ(model.at(1, Track::Work, {2.5}, {0.6})->kind, Kind::Forward);
  EXPECT_EQ(model.at(1, Track::Work, {9}, {0.6}), nullptr);
}

TEST(SliceText, SaysWhatWhenAndForWhom) {
  const Timeline timeline = twoLanes();
  EXPECT_EQ(sliceText(timeline.spans[2], timeline.lanes), QStringLiteral("waits 4\u2009s for pipeline 0, stage 1"));
  EXPECT_EQ(sliceText({Kind::Backward, 0, 6, {0.24}, {0.26}}, {}), QStringLiteral("micro-batch 6 backward, 240–260\u2009ms"));
  EXPECT_EQ(sliceText({Kind::Sync, 0, -1, {0.24}, {0.2405}}, {}), QStringLiteral("gradient sync, 240.00–240.50\u2009ms"));
}

TEST(TickText, HasOneUnitAndTheDigitsOfTheStep) {
  EXPECT_EQ(tickText({200}, {20}, {217}), QStringLiteral("200\u2009s"));
  EXPECT_EQ(tickText({0.5}, {0.5}, {6.7}), QStringLiteral("0.5\u2009s"));
  EXPECT_EQ(tickText({3.25}, {0.05}, {3.8}), QStringLiteral("3.25\u2009s"));
  EXPECT_EQ(tickText({0.48}, {0.02}, {0.6}), QStringLiteral("480\u2009ms"));
}

}  // namespace
}  // namespace evenkeel::gui
