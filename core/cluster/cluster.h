// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <compare>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/cluster/device_type.h"

namespace evenkeel {

/// One accelerator: the index of its node in Cluster::nodes and its index in that node. Ordered by node, then index.
struct DeviceId {
  int node = 0, index = 0;
  auto operator<=>(const DeviceId&) const = default;
};

/// One slot of a node: the index of its type in Cluster::deviceTypes; the uuid pins a physical card (may be empty).
struct Device {
  int type = 0;
  std::string uuid;
  bool operator==(const Device&) const = default;
};

/// How to reach a node from the workstation. No host: the node is this machine.
struct SshTarget {
  std::string host;
  int port = 22;
  std::string user, identity, proxyJump, knownHosts;  // empty: as ~/.ssh/config or ssh's defaults say
  Json extra{};
  bool operator==(const SshTarget&) const = default;
};

struct Node {
  std::string name;
  std::vector<Device> devices;
  LinkSpec intra;             // between two devices of this node
  LinkSpec nic;               // to other nodes
  bool nicPerDevice = false;  // nic is that of each device (rail), else one for the whole node, shared by its flows
  SshTarget ssh;
  std::string trainAddress;  // numeric address on the training interface; empty: found by preflight
  double pricePerHour = 0;   // 0: no price known
  Json extra{};
  bool operator==(const Node&) const = default;
};

struct Switch {
  std::string name;
  std::vector<std::string> members;  // names of nodes or switches
  BytesPerSecond bandwidth;          // per port
  BytesPerSecond total;              // through the whole switch; 0: not limited
  Seconds latency;
  Json extra{};
  bool operator==(const Switch&) const = default;
};

/// A drawn connection of two nodes; overrides NICs and switches between them.
struct Link {
  int first = 0, second = 0;  // node indices
  LinkSpec spec;
  Json extra{};
  bool operator==(const Link&) const = default;
};

/// Machines and their connections. Positions on the canvas live in the project, not here.
struct Cluster {
  std::vector<DeviceType> deviceTypes;
  std::vector<Node> nodes;
  std::vector<Switch> switches;
  std::vector<Link> links;
  Json extra{};
  bool operator==(const Cluster&) const = default;

  /// All devices, by node and index.
  [[nodiscard]] std::vector<DeviceId> devices() const;
  [[nodiscard]] int deviceCount() const;
  [[nodiscard]] bool contains(DeviceId device) const;
  [[nodiscard]] int typeIndexOf(DeviceId device) const;
  [[nodiscard]] const DeviceType& typeOf(DeviceId device) const;
  /// "node/index", as plans and people write it.
  [[nodiscard]] std::string nameOf(DeviceId device) const;
  [[nodiscard]] Result<DeviceId> find(std::string_view nodeSlashIndex) const;

  /// What one flow gets between two unlike devices: inside a node its intra link; between nodes the drawn link if there is one,
  /// else the path through the drawn switches, else the slower of the two NICs (latencies of both ends: the larger).
  [[nodiscard]] LinkSpec linkBetween(DeviceId a, DeviceId b) const;
  /// The switches on that way, by index; none inside a node or where nothing or a drawn link joins the nodes.
  [[nodiscard]] std::vector<int> switchesBetween(DeviceId a, DeviceId b) const;
};

inline constexpr int kMaxDevices = 16384;
inline constexpr std::string_view kClusterFormat = "evenkeel.cluster/1";

/// A cluster object inside another document (a plan) or a whole file. Device types that the file does not define are taken
/// from the catalogue; an unknown one is an error that names the nearest known names. Without a node it is an error too, unless
/// it is still being drawn.
enum class Drawn { Finished, MayBeEmpty };
[[nodiscard]] Cluster readCluster(JsonReader& reader, Drawn drawn = Drawn::Finished);
[[nodiscard]] Json toJson(const Cluster& cluster);
[[nodiscard]] Result<Cluster> loadCluster(const std::filesystem::path& file);

/// NODESxDEVICES:TYPE[@SPEED][,...], for example "8x8:Ascend-910B2,8x8:Ascend-910B4" or "1x2:cpu@0.5,1x2:cpu@0.25".
/// Nodes are named after their type, "cpu-0", "cpu-1", ...
[[nodiscard]] Result<Cluster> parseClusterShorthand(std::string_view text);

/// What `--cluster` takes: a file if one of that name exists or the text looks like a path, else the shorthand.
[[nodiscard]] Result<Cluster> clusterFromArgument(const std::string& argument);

}  // namespace evenkeel

template <>
struct std::hash<evenkeel::DeviceId> {
  std::size_t operator()(const evenkeel::DeviceId& id) const noexcept {
    return std::hash<long long>{}(static_cast<long long>(id.node) << 32 | static_cast<long long>(id.index));
  }
};
