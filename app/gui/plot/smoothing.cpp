// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/plot/smoothing.h"

#include <cmath>
#include <limits>

namespace evenkeel::gui {

double Smoothing::next(double value) {
  if (!std::isfinite(value)) return std::numeric_limits<double>::quiet_NaN();
  sum_ = weight_ * sum_ + (1 - weight_) * value;
  mass_ = weight_ * mass_ + (1 - weight_);
  return sum_ / mass_;
}

}  // namespace evenkeel::gui
