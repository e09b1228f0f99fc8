// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cluster/device_type.h"

#include <algorithm>
#include <iterator>

namespace evenkeel {
namespace {

constexpr Bounds<double> kPositive{1e-9, 1e9};

}  // namespace

Seconds LinkSpec::transferTime(Bytes size) const {
  if (table.empty()) return size / bandwidth;
  const auto above = std::ranges::lower_bound(table, size, {}, &MessageRate::size);
  if (above == table.begin()) return size / above->bandwidth;
  if (above == table.end()) return size / table.back().bandwidth;
  const MessageRate& below = *std::prev(above);
  const Seconds low = below.size / below.bandwidth, high = above->size / above->bandwidth;
  return low + ((size - below.size) / (above->size - below.size)) * (high - low);
}

BytesPerSecond LinkSpec::bandwidthFor(Bytes size) const {
  if (table.empty()) return bandwidth;
  const Bytes message = std::max(size, Bytes{1});
  return {static_cast<double>(message.value) / transferTime(message).value};
}

std::vector<MessageRate> readMessageRates(JsonReader& reader, std::string_view key) {
  std::vector<MessageRate> table;
  Seconds before;
  for (JsonReader& entry : reader.optionalObjects(key)) {
    const MessageRate rate{{entry.integer("message_bytes", {1, std::int64_t{1} << 50U})},
                           fromGbs(entry.number("bandwidth_gbs", kPositive))};
    if (reader.context().error) return {};
    const Seconds time = rate.size / rate.bandwidth;
    if (!table.empty() && (rate.size <= table.back().size || time < before)) {
      entry.fail("message_bytes", "is no larger or takes less time than the row above", "expected rising sizes that take rising times");
      return {};
    }
    before = time;
    table.push_back(rate);
  }
  return table;
}

Json toJson(const std::vector<MessageRate>& table) {
  Json json = Json::array();
  for (const MessageRate& rate : table)
    json.push_back({{"message_bytes", rate.size.value}, {"bandwidth_gbs", rounded(gbs(rate.bandwidth))}});
  return json;
}

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
