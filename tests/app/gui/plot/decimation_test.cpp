// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/plot/decimation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace evenkeel::gui {
namespace {

std::vector<CurvePoint> flat(int count) {
  std::vector<CurvePoint> points;
  for (int i = 0; i < count; ++i) points.push_back({static_cast<double>(i), 1.0 + 0.001 * (i % 7)});
  return points;
}

double greatest(const std::vector<CurvePoint>& points) { return std::ranges::max(points, {}, &CurvePoint::y).y; }

// tensorboard #6796: a reservoir of a thousand points hides spikes.
TEST(Envelope, KeepsASpikeOfOneSampleAtEveryZoom) {
  auto points = flat(100'000);
  points[77'777].y = 50;
  points[33'333].y = -50;
  for (const int columns : {1, 2, 7, 100, 1279, 5000}) {
    for (const double half : {50'000.0, 10'000.0, 321.0, 12.5, 2.0}) {
      const auto high = envelope(CurveSeries(points), 77'777 - half, 77'777 + half, columns);
      EXPECT_EQ(greatest(high), 50) << columns << " columns, +-" << half;
      const auto low = envelope(CurveSeries(points), 33'333 - half, 33'333 + half, columns);
      EXPECT_EQ(std::ranges::min(low, {}, &CurvePoint::y).y, -50) << columns << " columns, +-" << half;
    }
  }
}

TEST(CurveSeries, AssignedFromAnotherIsAsIfAppended) {
  auto points = flat(1000);
  points[0].y = points[64].y = points[700].y = std::numeric_limits<double>::quiet_NaN();
  points[300].y = 40;
  const auto half = [](double y) { return y / 2; };
  CurveSeries appended, assigned(flat(2000));
  for (const CurvePoint& point : points) appended.append({point.x, half(point.y)});
  assigned.assign(CurveSeries(points), half);
  ASSERT_EQ(assigned.points().size(), points.size());
  for (const int columns : {3, 10, 5000}) {
    const auto expected = envelope(appended, 0, 999, columns), drawn = envelope(assigned, 0, 999, columns);
    ASSERT_EQ(drawn.size(), expected.size()) << columns;
    for (std::size_t i = 0; i < drawn.size(); ++i) {
      EXPECT_EQ(drawn[i].x, expected[i].x) << columns;
      EXPECT_TRUE(drawn[i].y == expected[i].y || (std::isnan(drawn[i].y) && std::isnan(expected[i].y))) << columns;
    }
  }
}

TEST(Envelope, HasAtMostTwoPointsAPixelAndAscendsInX) {
  const auto drawn = envelope(CurveSeries(flat(1'000'000)), 0, 999'999, 1200);
  EXPECT_LE(drawn.size(), 2U * 1200 + 4);
  EXPECT_TRUE(std::ranges::is_sorted(drawn, {}, &CurvePoint::x));
}

// wandb #2202: NaN is silently absent; here the line stops and begins again.
TEST(Envelope, KeepsAGapWhereAValueIsNotFinite) {
  for (const double broken : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    auto points = flat(50'000);
    points[20'000].y = broken;
    for (const int columns : {10, 1000, 100'000}) {
      const auto drawn = envelope(CurveSeries(points), 0, 49'999, columns);
      const auto gap = std::ranges::find_if(drawn, [](const CurvePoint& point) { return std::isnan(point.y); });
      ASSERT_NE(gap, drawn.end()) << columns;
      EXPECT_EQ(gap->x, 20'000);
      EXPECT_FALSE(std::isinf(greatest(drawn)));
    }
  }
}

// JKQtPlotter PR #33: a log axis with values <= 0. They are gaps, and they do not hide the least value that can be shown.
TEST(Envelope, OfALogAxisPassesOverValuesThatItCannotShow) {
  auto points = flat(10'000);
  points[5'000].y = -3;
  points[5'001].y = 0;
  points[5'002].y = 0.25;
  const auto drawn = envelope(CurveSeries(points), 0, 9'999, 100, 0);
  EXPECT_TRUE(std::ranges::any_of(drawn, [](const CurvePoint& point) { return point.y == 0.25; }));
  EXPECT_TRUE(std::ranges::any_of(drawn, [](const CurvePoint& point) { return std::isnan(point.y); }));
  EXPECT_TRUE(std::ranges::none_of(drawn, [](const CurvePoint& point) { return point.y <= 0; }));
}

TEST(Envelope, ShowsFewPointsOneByOneWithANeighbourAtEachSide) {
  const auto drawn = envelope(CurveSeries(flat(100)), 10, 20, 500);
  ASSERT_EQ(drawn.size(), 13U);
  EXPECT_EQ(drawn.front().x, 9);
  EXPECT_EQ(drawn.back().x, 21);
}

TEST(Envelope, OfNothingIsNothing) {
  EXPECT_TRUE(envelope({}, 0, 1, 100).empty());
  EXPECT_TRUE(envelope(CurveSeries(flat(10)), 3, 3, 100).empty());
  EXPECT_TRUE(envelope(CurveSeries(flat(10)), 0, 9, 0).empty());
  EXPECT_LE(envelope(CurveSeries(flat(10)), 100, 200, 100).size(), 1U);
}

}  // namespace
}  // namespace evenkeel::gui
