// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/plot/decimation.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace evenkeel::gui {
namespace {

constexpr double kGap = std::numeric_limits<double>::quiet_NaN();

bool isShown(double y, double above) { return std::isfinite(y) && y > above; }

/// The extremes of the pixel column that is being filled.
class Column {
 public:
  void take(const CurvePoint& point, double above) {
    if (!isShown(point.y, above)) {
      gap_ = &point;
      return;
    }
    if (least_ == nullptr || point.y < least_->y) least_ = &point;
    if (most_ == nullptr || point.y > most_->y) most_ = &point;
  }
  void flush(std::vector<CurvePoint>& out) {
    if (least_ != nullptr) {
      out.push_back(least_ < most_ ? *least_ : *most_);
      if (least_ != most_) out.push_back(least_ < most_ ? *most_ : *least_);
    }
    if (gap_ != nullptr) out.push_back({gap_->x, kGap});
    *this = Column();
  }

 private:
  const CurvePoint* least_ = nullptr;
  const CurvePoint* most_ = nullptr;
  const CurvePoint* gap_ = nullptr;
};

}  // namespace

std::pair<std::size_t, std::size_t> visiblePoints(std::span<const CurvePoint> points, double first, double last) {
  const auto begin = std::ranges::lower_bound(points, first, {}, &CurvePoint::x);
  const auto end = std::ranges::upper_bound(points, last, {}, &CurvePoint::x);
  auto from = static_cast<std::size_t>(begin - points.begin());
  auto to = std::max(from, static_cast<std::size_t>(end - points.begin()));
  if (from > 0) --from;
  if (to < points.size()) ++to;
  return {from, to};
}

std::vector<CurvePoint> envelope(std::span<const CurvePoint> points, double first, double last, int columns, double above) {
  const auto [from, to] = visiblePoints(points, first, last);
  const auto visible = points.subspan(from, to - from);
  if (columns < 1 || !(last > first)) return {};
  if (visible.size() <= static_cast<std::size_t>(columns)) {
    std::vector<CurvePoint> all(visible.begin(), visible.end());
    for (CurvePoint& point : all) {
      if (!isShown(point.y, above)) point.y = kGap;
    }
    return all;
  }
  std::vector<CurvePoint> out;
  out.reserve(2 * static_cast<std::size_t>(columns) + 8);
  const double width = (last - first) / columns;
  Column column;
  double columnEnd = first;  // the neighbour at the left has a column of its own
  for (const CurvePoint& point : visible) {
    if (point.x >= columnEnd) {
      column.flush(out);
      columnEnd = first + width * (std::floor((point.x - first) / width) + 1);
    }
    column.take(point, above);
  }
  column.flush(out);
  return out;
}

}  // namespace evenkeel::gui
