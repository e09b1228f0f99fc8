// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "core/base/units.h"

namespace evenkeel::gui {

/// 1, 2 or 5 times a power of ten: the first that is not below `least` > 0.
[[nodiscard]] double roundStep(double least);

/// Which moments of [0, total] a row of pixels shows. No widget enters. All x are in pixels from the left end of the rows.
/// Always 0 <= first() < last() <= total, whatever is asked of it.
class TimeAxis {
 public:
  /// Keeps what is shown where it still exists; shows everything when everything was shown.
  void setTotal(Seconds total);
  void setWidth(double pixels);

  [[nodiscard]] Seconds total() const { return total_; }
  [[nodiscard]] double width() const { return width_; }
  [[nodiscard]] Seconds first() const { return first_; }
  [[nodiscard]] Seconds last() const { return last_; }
  [[nodiscard]] bool showsAll() const { return first_.value <= 0 && last_ >= total_; }

  [[nodiscard]] double xOf(Seconds time) const { return (time - first_) / span() * width_; }
  [[nodiscard]] Seconds timeAt(double x) const { return first_ + span() * (x / width_); }
  [[nodiscard]] Seconds perPixel() const { return span() / width_; }

  /// Above 1 shows less time, larger; what stands at x stays there as long as the ends allow.
  void zoom(double factor, double x);
  /// Moves what is shown by so many pixels; above 0: to later times.
  void pan(double pixels);
  void show(Seconds first, Seconds last);
  void fit() { show({}, total_); }

  /// Round moments (1, 2, 5 times a power of ten) that lie at least `leastPixels` apart, those that are shown.
  [[nodiscard]] std::vector<Seconds> ticks(double leastPixels) const;

 private:
  [[nodiscard]] Seconds span() const { return last_ - first_; }
  Seconds total_{1}, first_, last_{1};
  double width_ = 1;
};

}  // namespace evenkeel::gui
