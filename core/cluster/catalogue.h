// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/cluster/device_type.h"

namespace evenkeel {

/// One row of resources/devices.csv with the sources of its figures.
struct CatalogueDevice {
  DeviceType type;
  std::map<std::string, Source> sources;  // figure ("peak", "memory", "memory_bandwidth", "intra", "nic") -> source
};

/// The device types that we know, in the order of the table. Parsed once; a broken table is a bug (tested).
[[nodiscard]] const std::vector<CatalogueDevice>& deviceCatalogue();

/// "A100-80-SXM", "cpu" or, at a fraction of its speed, "cpu@0.25". An unknown name is an error that names near ones.
/// Speeds: finite, above 0, at most 100.
[[nodiscard]] Result<DeviceType> deviceTypeNamed(std::string_view name);

}  // namespace evenkeel
