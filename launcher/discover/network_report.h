// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/units.h"

namespace evenkeel {

/// A port to the network that is up.
struct FoundPort {
  std::string name;          // "eth0", "mlx5_0/ports/1"
  bool isInfiniband = false; // or RoCE: a port that the fast transports use
  BytesPerSecond bandwidth;  // per direction; 0: the driver does not say
  bool operator==(const FoundPort&) const = default;
};

struct NetworkReport {
  std::vector<FoundPort> ports;
  std::vector<std::string> addresses;  // "eth0 10.0.0.1"
};

/// The lines of the probe's question "network". Ports that are down, and lines that are none, are left out.
[[nodiscard]] NetworkReport parseNetwork(std::string_view text);

/// What a node has towards others: one NIC a device where there are at least as many fast ports of known speed as devices, else one for all of
/// them: the sum of the fast ports, or the fastest other port. Bandwidth 0: unknown.
struct NodeNic {
  BytesPerSecond bandwidth;
  bool perDevice = false;
  std::string how;  // "8 x 25 GB/s (InfiniBand)", for people
};
[[nodiscard]] NodeNic nicOf(const NetworkReport& network, std::size_t devices);

}  // namespace evenkeel
