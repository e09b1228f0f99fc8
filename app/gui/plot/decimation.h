// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace evenkeel::gui {

/// One value of a curve. y may be NaN or infinite: then there is nothing to draw, and the curve has a gap.
struct CurvePoint {
  double x = 0, y = 0;
};

/// A curve that only grows. Beside its points it keeps the extremes of each block of 64, so that a picture of a million points
/// looks at some thousands of them.
class CurveSeries {
 public:
  CurveSeries() = default;
  explicit CurveSeries(std::span<const CurvePoint> points) {
    for (const CurvePoint& point : points) append(point);
  }
  /// The same x as `other`, each value as `next` makes it of the value there, from the first to the last. O(n)
  template <class Next>
  void assign(const CurveSeries& other, Next next);
  /// x must be above the last one. O(1).
  void append(const CurvePoint& point);
  void clear();
  [[nodiscard]] const std::vector<CurvePoint>& points() const { return points_; }

 private:
  friend class Column;
  static constexpr std::size_t kBlock = 64;
  struct Block {
    std::size_t least, most;  // indices of points
    bool isFinite = true;     // all of them
  };
  std::vector<CurvePoint> points_;
  std::vector<Block> blocks_;
};

template <class Next>
void CurveSeries::assign(const CurveSeries& other, Next next) {
  const std::size_t count = other.points_.size();
  points_.resize(count);
  blocks_.resize(other.blocks_.size());
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    const std::size_t from = b * kBlock, to = std::min(from + kBlock, count);
    Block block{from, from, true};
    double least = std::numeric_limits<double>::infinity(), most = -least;
    for (std::size_t i = from; i < to; ++i) {
      const double y = next(other.points_[i].y);
      points_[i] = {other.points_[i].x, y};
      block.isFinite = block.isFinite && std::isfinite(y);
      if (y < least) least = y, block.least = i;
      if (y > most) most = y, block.most = i;
    }
    blocks_[b] = block;
  }
}

/// Indices [from, to) of the points that a view of x in [first, last] needs: those inside and one neighbour at each side, so that
/// lines run out of the view. The points ascend in x. O(log n).
[[nodiscard]] std::pair<std::size_t, std::size_t> visiblePoints(std::span<const CurvePoint> points, double first, double last);

/// What can be seen of a curve that is drawn over `columns` pixels: the least and the greatest value of each pixel column, in the
/// order in which they came, so that a spike of a single sample survives any zoom. A column that holds a value that is not
/// finite, or not above `above` (0 for a log axis), ends with a gap (y = NaN). Fewer points than columns come out one by one.
/// At most two points and one gap a column, and one neighbour at each side. O(columns (64 + log n) + visible points / 64).
[[nodiscard]] std::vector<CurvePoint> envelope(const CurveSeries& series, double first, double last, int columns,
                                               double above = -std::numeric_limits<double>::infinity());

}  // namespace evenkeel::gui
