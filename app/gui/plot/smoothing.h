// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cmath>
#include <limits>

namespace evenkeel::gui {

/// Exponential smoothing, value by value:
///     s = w s + (1 - w) y,  shown s / (1 - w^n) after n values        source: Kingma and Ba 2015 (bias correction)
/// so that the first values are not drawn towards 0. A value that is not finite is passed over: it comes out as NaN (a gap) and
/// leaves no trace in what follows.
class Smoothing {
 public:
  /// weight of the past in [0, 1): 0 shows the values as they are.
  explicit Smoothing(double weight = 0) : weight_(weight) {}
  [[nodiscard]] double next(double value) {
    if (!std::isfinite(value)) return std::numeric_limits<double>::quiet_NaN();
    sum_ = weight_ * sum_ + (1 - weight_) * value;
    mass_ = weight_ * mass_ + (1 - weight_);
    return sum_ / mass_;
  }
  [[nodiscard]] double weight() const { return weight_; }

 private:
  double weight_ = 0, sum_ = 0, mass_ = 0;  // mass_ = 1 - weight_^n
};

}  // namespace evenkeel::gui
