// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/json_reader.h"
#include "core/base/precision.h"
#include "core/base/units.h"

namespace evenkeel {

/// What messages of one size get, latency included.
struct MessageRate {
  Bytes size;
  BytesPerSecond bandwidth;
  bool operator==(const MessageRate&) const = default;
};

/// Latency + bytes / bandwidth, per direction; or, where it was measured, a table by message size.
struct LinkSpec {
  BytesPerSecond bandwidth;
  Seconds latency;
  /// Rising sizes and times (readers check it). `bandwidth` is then that of long messages and `latency` is added all the same.
  std::vector<MessageRate> table{};
  bool operator==(const LinkSpec&) const = default;

  /// One message without the latency. Between two points of the table time grows linearly; below the first and above the last their
  /// bandwidth holds.
  [[nodiscard]] Seconds transferTime(Bytes size) const;
  /// What a message of that size gets; at least 1 byte.
  [[nodiscard]] BytesPerSecond bandwidthFor(Bytes size) const;
};

/// Where a figure comes from. An unverified figure was written from memory and is marked so wherever it is shown.
struct Source {
  std::string title, address, date;
  bool verified = false;
  bool operator==(const Source&) const = default;
};

/// A model of accelerator (or one CPU core), as its data sheet describes it.
struct DeviceType {
  std::string name;    // "A100-80-SXM", "cpu@0.25"
  std::string vendor;
  /// Every time on this device is divided by it: "cpu@0.25" is a cpu at a quarter of its speed. The peaks below are at speed 1.
  double speed = 1.0;
  std::map<Precision, FlopsPerSecond> peak;  // dense; a precision that is absent does not exist on this device
  Bytes memory;
  BytesPerSecond memoryBandwidth;
  LinkSpec intra;                // between two of them inside a node
  BytesPerSecond nicBandwidth;   // default of nodes with these devices: per device or per node, as nicPerDevice says
  bool nicPerDevice = false;
  bool runsHere = false;         // the runtime can train on it; else "plan only"
  std::string source;            // for people: titles, pages, dates; says which figures are unverified
  Json extra;                    // fields of the file that we do not know
  bool operator==(const DeviceType&) const = default;

  [[nodiscard]] bool has(Precision precision) const { return peak.contains(precision); }
};

/// The table of a link in a file: [{"message_bytes": 65536, "bandwidth_gbs": 1.2}, ...]; empty if the field is absent.
[[nodiscard]] std::vector<MessageRate> readMessageRates(JsonReader& reader, std::string_view key);
[[nodiscard]] Json toJson(const std::vector<MessageRate>& table);

[[nodiscard]] DeviceType readDeviceType(JsonReader& reader);
[[nodiscard]] Json toJson(const DeviceType& type);

}  // namespace evenkeel
