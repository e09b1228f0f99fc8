// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/plot/decimation.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace evenkeel::gui {
namespace {

constexpr double kGap = std::numeric_limits<double>::quiet_NaN();

bool isShown(double y, double above) { return std::isfinite(y) && y > above; }

}  // namespace

void CurveSeries::append(const CurvePoint& point) {
  assert(points_.empty() || point.x > points_.back().x);
  const std::size_t index = points_.size();
  points_.push_back(point);
  if (index % kBlock == 0) {
    blocks_.push_back({index, index, std::isfinite(point.y)});
    return;
  }
  Block& block = blocks_.back();
  block.isFinite = block.isFinite && std::isfinite(point.y);
  if (point.y < points_[block.least].y) block.least = index;
  if (point.y > points_[block.most].y) block.most = index;
}

void CurveSeries::clear() {
  points_.clear();
  blocks_.clear();
}

/// The extremes of the pixel column that is being filled.
class Column {
 public:
  Column(const CurveSeries& series, double above) : series_(series), above_(above) {}

  /// Points [from, to): whole blocks by their extremes, the rest one by one.
  void take(std::size_t from, std::size_t to) {
    while (from < to) {
      const std::size_t index = from / CurveSeries::kBlock;
      const std::size_t end = (index + 1) * CurveSeries::kBlock;
      const CurveSeries::Block& block = series_.blocks_[index];
      if (from % CurveSeries::kBlock == 0 && end <= to && block.isFinite && series_.points_[block.least].y > above_) {
        take(series_.points_[block.least]);
        take(series_.points_[block.most]);
        from = end;
      } else {
        take(series_.points_[from++]);
      }
    }
  }
  void flush(std::vector<CurvePoint>& out) {
    if (least_ != nullptr) {
      out.push_back(*std::min(least_, most_));
      if (least_ != most_) out.push_back(*std::max(least_, most_));
    }
    if (gap_ != nullptr) out.push_back({gap_->x, kGap});
    least_ = most_ = gap_ = nullptr;
  }

 private:
  void take(const CurvePoint& point) {
    if (!isShown(point.y, above_)) {
      gap_ = &point;
      return;
    }
    if (least_ == nullptr || point.y < least_->y) least_ = &point;
    if (most_ == nullptr || point.y > most_->y) most_ = &point;
  }

  const CurveSeries& series_;
  const double above_;
  const CurvePoint* least_ = nullptr;
  const CurvePoint* most_ = nullptr;
  const CurvePoint* gap_ = nullptr;
};

std::pair<std::size_t, std::size_t> visiblePoints(std::span<const CurvePoint> points, double first, double last) {
  const auto begin = std::ranges::lower_bound(points, first, {}, &CurvePoint::x);
  const auto end = std::ranges::upper_bound(points, last, {}, &CurvePoint::x);
  auto from = static_cast<std::size_t>(begin - points.begin());
  auto to = std::max(from, static_cast<std::size_t>(end - points.begin()));
  if (from > 0) --from;
  if (to < points.size()) ++to;
  return {from, to};
}

std::vector<CurvePoint> envelope(const CurveSeries& series, double first, double last, int columns, double above) {
  const std::span<const CurvePoint> points = series.points();
  const auto [from, to] = visiblePoints(points, first, last);
  if (columns < 1 || !(last > first)) return {};
  std::vector<CurvePoint> out;
  if (to - from <= static_cast<std::size_t>(columns)) {
    out.assign(points.begin() + static_cast<std::ptrdiff_t>(from), points.begin() + static_cast<std::ptrdiff_t>(to));
    for (CurvePoint& point : out) {
      if (!isShown(point.y, above)) point.y = kGap;
    }
    return out;
  }
  out.reserve(2 * static_cast<std::size_t>(columns) + 8);
  Column column(series, above);
  std::size_t at = from;
  const auto takeTo = [&](std::size_t end) {
    column.take(at, end);
    column.flush(out);
    at = end;
  };
  if (points[from].x < first) takeTo(from + 1);
  const double width = (last - first) / columns;
  for (int c = 1; c < columns; ++c) {
    const auto rest = points.subspan(at, to - at);
    const auto end = std::ranges::lower_bound(rest, first + c * width, {}, &CurvePoint::x);
    takeTo(at + static_cast<std::size_t>(end - rest.begin()));
  }
  const std::size_t neighbour = points[to - 1].x > last ? to - 1 : to;
  takeTo(neighbour);
  takeTo(to);
  return out;
}

}  // namespace evenkeel::gui
