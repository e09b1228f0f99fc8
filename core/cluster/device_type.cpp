// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cluster/device_type.h"

namespace evenkeel {
namespace {

constexpr Bounds<double> kPositive{1e-9, 1e9};

}  // namespace

DeviceType readDeviceType(JsonReader& reader) {
  DeviceType type;
  type.name = reader.text("name");
  type.vendor = reader.text("vendor", "");
  type.speed = reader.number("speed", {1e-6, 100.0}, 1.0);
  JsonReader peaks = reader.object("peak_tflops");
  for (const auto& [word, precision] : precisionWords()) {
    if (peaks.has(word)) type.peak[precision] = fromTflops(peaks.number(word, kPositive));
  }
  if (type.peak.empty()) reader.fail("peak_tflops", "names no precision", "expected at least one of fp32, bf16, fp16");
  type.memory = fromGib(reader.number("memory_gib", {1e-6, 1e6}));
  type.memoryBandwidth = fromGbs(reader.number("memory_bandwidth_gbs", kPositive));
  type.intra.bandwidth = fromGbs(reader.number("intra_bandwidth_gbs", kPositive, 16.0));
  type.intra.latency = fromMicroseconds(reader.number("intra_latency_us", {0.0, 1e9}, 10.0));
  type.nicBandwidth = fromGbs(reader.number("nic_bandwidth_gbs", kPositive, 12.5));
  type.nicPerDevice = reader.boolean("nic_per_device", false);
  type.runsHere = reader.boolean("runs_here", false);
  type.source = reader.text("source", "");
  type.extra = reader.rest();
  return type;
}

Json toJson(const DeviceType& type) {
  Json json;
  json["name"] = type.name;
  json["vendor"] = type.vendor;
  if (type.speed != 1.0) json["speed"] = type.speed;
  for (const auto& [word, precision] : precisionWords()) {
    if (type.has(precision)) json["peak_tflops"][std::string(word)] = rounded(tflops(type.peak.at(precision)));
  }
  json["memory_gib"] = rounded(gib(type.memory));
  json["memory_bandwidth_gbs"] = rounded(gbs(type.memoryBandwidth));
  json["intra_bandwidth_gbs"] = rounded(gbs(type.intra.bandwidth));
  json["intra_latency_us"] = rounded(microseconds(type.intra.latency));
  json["nic_bandwidth_gbs"] = rounded(gbs(type.nicBandwidth));
  json["nic_per_device"] = type.nicPerDevice;
  json["runs_here"] = type.runsHere;
  json["source"] = type.source;
  addUnknownFields(json, type.extra);
  return json;
}

}  // namespace evenkeel
