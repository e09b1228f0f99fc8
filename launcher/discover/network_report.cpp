// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/discover/network_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "core/base/words.h"

namespace evenkeel {
namespace {

constexpr double kMostGigabits = 1e5;

BytesPerSecond fromGigabits(double gigabits) { return {gigabits * 1e9 / 8}; }

}  // namespace

NetworkReport parseNetwork(std::string_view text) {
  NetworkReport report;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string kind, name, state, speed;
    words >> kind >> name;
    if (kind == "address") {
      if (words >> state) report.addresses.push_back(name + " " + state);
      continue;
    }
    words >> state >> speed;
    const double number = parseNumber<double>(speed).value_or(0);
    if (kind == "nic" && state == "up") {  // Mbit/s; -1: unknown
      report.ports.push_back({name, false, fromGigabits(number > 0 && number / 1000 < kMostGigabits ? number / 1000 : 0)});
    } else if (kind == "infiniband" && state == "4") {  // 4: ACTIVE; Gbit/s
      report.ports.push_back({name, true, fromGigabits(number > 0 && number < kMostGigabits ? number : 0)});
    }
  }
  return report;
}

NodeNic nicOf(const NetworkReport& network, std::size_t devices) {
  BytesPerSecond sum, slowest, fastest;
  std::size_t fast = 0;
  for (const FoundPort& port : network.ports) {
    if (port.bandwidth.value <= 0) continue;
    if (port.isInfiniband) {
      slowest = fast == 0 ? port.bandwidth : std::min(slowest, port.bandwidth);
      sum.value += port.bandwidth.value;
      ++fast;
    } else {
      fastest = std::max(fastest, port.bandwidth);
    }
  }
  if (fast > 0 && fast >= devices) return {slowest, true, fmt::format("{} x {:g} GB/s (InfiniBand or RoCE)", fast, gbs(slowest))};
  if (fast > 0) return {sum, false, fmt::format("{} x {:g} GB/s together (InfiniBand or RoCE)", fast, gbs(slowest))};
  if (fastest.value > 0) return {fastest, false, fmt::format("{:g} GB/s (Ethernet)", gbs(fastest))};
  return {};
}

}  // namespace evenkeel
