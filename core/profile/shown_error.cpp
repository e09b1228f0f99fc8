// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/profile/shown_error.h"

namespace evenkeel {

double shownError(ValueSource source, const DeviceType& device) {
  constexpr double kImported = 0.042;      // 41 measured runs from imported profiles
  constexpr double kInterpolated = 0.067;  // no run needed a point between: the worst set of those 41
  switch (source) {
    case ValueSource::Measured:
    case ValueSource::Imported:
    case ValueSource::Apportioned: return kImported;
    case ValueSource::Interpolated: return kInterpolated;
    case ValueSource::Analytic: break;
  }
  return deviceClassOf(device).shownError;
}

}  // namespace evenkeel
