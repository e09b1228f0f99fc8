// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/profile/device_class.h"
#include "core/profile/profile.h"

namespace evenkeel {

/// Mean absolute error, as a fraction, that iteration times predicted from values of that kind have shown against measurements:
/// bench_accuracy prints them, resources/docs/accuracy.md says of what. Nothing measured by our own runtime has been compared
/// yet: it stands with the imported profiles, which others measured the same way.
[[nodiscard]] double shownError(ValueSource source, const DeviceType& device);

}  // namespace evenkeel
