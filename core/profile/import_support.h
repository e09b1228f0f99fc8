// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string>

#include "core/base/json.h"
#include "core/cluster/device_type.h"

namespace evenkeel {

/// A number of seconds in a foreign file; nothing unless it is finite and from 0 to 1e6. `unit` seconds are 1 of the file.
[[nodiscard]] std::optional<Seconds> secondsOf(const Json& json, double unit = 1.0);

/// The device that a foreign file names, for the proportions within a layer: ours if we know it, else an A100.
[[nodiscard]] DeviceType referenceType(const std::string& theirs);

}  // namespace evenkeel
