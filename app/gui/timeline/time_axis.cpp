// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/timeline/time_axis.h"

#include <algorithm>
#include <cmath>

namespace evenkeel::gui {
namespace {

constexpr double kClosest = 1e-6;  // part of the total that is shown at least

}  // namespace

double roundStep(double least) {
  const double decade = std::pow(10.0, std::floor(std::log10(least)));
  for (const double round : {1.0, 2.0, 5.0}) {
    if (round * decade >= least) return round * decade;
  }
  return 10 * decade;
}

void TimeAxis::setTotal(Seconds total) {
  const bool all = showsAll();
  total_ = std::max(total, Seconds{1e-9});
  all ? fit() : show(first_, last_);
}

void TimeAxis::setWidth(double pixels) { width_ = std::max(1.0, pixels); }

void TimeAxis::zoom(double factor, double x) {
  const Seconds fixed = timeAt(x);
  const Seconds wanted = std::clamp(span() / factor, total_ * kClosest, total_);
  const Seconds first = fixed - wanted * (x / width_);
  show(first, first + wanted);
}

void TimeAxis::pan(double pixels) {
  const Seconds by = std::clamp(perPixel() * pixels, Seconds{} - first_, total_ - last_);
  show(first_ + by, last_ + by);
}

void TimeAxis::show(Seconds first, Seconds last) {
  const Seconds wanted = std::clamp(last - first, total_ * kClosest, total_);
  first_ = std::clamp(first, Seconds{}, total_ - wanted);
  last_ = std::min(total_, first_ + wanted);
}

std::vector<Seconds> TimeAxis::ticks(double leastPixels) const {
  const double step = roundStep(perPixel().value * leastPixels);
  std::vector<Seconds> ticks;
  // By whole numbers, so that no rounding adds up; one step more than fits would already be outside.
  for (double n = std::ceil(first_.value / step - 1e-9); n * step <= last_.value * (1 + 1e-12); ++n) ticks.push_back({n * step});
  return ticks;
}

}  // namespace evenkeel::gui
