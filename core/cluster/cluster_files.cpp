// SPDX-License-Identifier: GPL-3.0-or-later
// Clusters as text: the JSON format and the shorthand of the command line.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/words.h"
#include "core/cluster/catalogue.h"
#include "core/cluster/cluster.h"
#include "core/cluster/topology_check.h"

namespace evenkeel {
namespace {

constexpr Bounds<double> kBandwidth{1e-9, 1e9};
constexpr Bounds<double> kLatency{0.0, 1e9};
constexpr double kDefaultNicLatencyUs = 10.0;  // architecture: 10 us between nodes unless said

/// The index of a type in the cluster, added from the catalogue when the cluster does not define it yet.
Result<int> typeIndex(Cluster& cluster, const std::string& name) {
  for (std::size_t i = 0; i < cluster.deviceTypes.size(); ++i) {
    if (cluster.deviceTypes[i].name == name) return static_cast<int>(i);
  }
  auto type = deviceTypeNamed(name);
  if (!type) return std::move(type).error();
  cluster.deviceTypes.push_back(*std::move(type));
  return static_cast<int>(cluster.deviceTypes.size()) - 1;
}

/// Links of a node as its first device's type has them by default.
void setDefaultLinks(const Cluster& cluster, Node& node) {
  const DeviceType& type = cluster.deviceTypes[static_cast<std::size_t>(node.devices.front().type)];
  node.intra = type.intra;
  node.nic = {type.nicBandwidth, fromMicroseconds(kDefaultNicLatencyUs), {}};
  node.nicPerDevice = type.nicPerDevice;
}

void readDevices(JsonReader& reader, Cluster& cluster, Node& node) {
  const auto add = [&](JsonReader& entry, std::int64_t count) {
    const std::string type = entry.text("type");
    const std::string uuid = entry.text("uuid", "");
    if (reader.context().error) return;
    auto index = typeIndex(cluster, type);
    if (!index) {
      entry.fail("type", index.error().what + " (\"" + type.substr(0, 80) + "\")", index.error().remedy);
      return;
    }
    for (std::int64_t i = 0; i < count; ++i) node.devices.push_back({*index, uuid});
  };
  if (reader.raw("devices").is_array()) {
    for (JsonReader& entry : reader.objects("devices")) add(entry, 1);
    if (node.devices.empty()) reader.fail("devices", "is empty", "expected at least one device");
  } else {
    JsonReader entry = reader.object("devices");
    add(entry, entry.integer("count", {1, kMaxDevices}));
  }
}

SshTarget readSsh(JsonReader& node) {
  SshTarget ssh;
  if (!node.has("ssh")) return ssh;
  JsonReader reader = node.object("ssh");
  ssh.host = reader.text("host");
  ssh.port = static_cast<int>(reader.integer("port", {1, 65535}, 22));
  ssh.user = reader.text("user", "");
  ssh.identity = reader.text("identity", "");
  ssh.proxyJump = reader.text("proxy_jump", "");
  ssh.knownHosts = reader.text("known_hosts", "");
  ssh.extra = reader.rest();
  return ssh;
}

void readNode(JsonReader& reader, Cluster& cluster) {
  Node node;
  node.name = reader.text("name");
  if (node.name.empty() || node.name.find('/') != std::string::npos) {
    reader.fail("name", "is not a usable name", "expected a name without /");
  }
  if (std::ranges::any_of(cluster.nodes, [&](const Node& other) { return other.name == node.name; })) {
    reader.fail("name", fmt::format("\"{}\" is the name of another node", node.name), "expected names that differ");
  }
  readDevices(reader, cluster, node);
  if (reader.context().error) return;
  setDefaultLinks(cluster, node);
  node.intra.bandwidth = fromGbs(reader.number("intra_bandwidth_gbs", kBandwidth, gbs(node.intra.bandwidth)));
  node.intra.latency = fromMicroseconds(reader.number("intra_latency_us", kLatency, microseconds(node.intra.latency)));
  // A NIC that the file gives is the node's own and shared, unless the file says otherwise.
  node.nicPerDevice = reader.boolean("nic_per_device", node.nicPerDevice && !reader.has("nic_bandwidth_gbs"));
  node.nic.bandwidth = fromGbs(reader.number("nic_bandwidth_gbs", kBandwidth, gbs(node.nic.bandwidth)));
  node.nic.latency = fromMicroseconds(reader.number("nic_latency_us", kLatency, microseconds(node.nic.latency)));
  node.intra.table = readMessageRates(reader, "intra_bandwidth_table");
  node.nic.table = readMessageRates(reader, "nic_bandwidth_table");
  node.ssh = readSsh(reader);
  node.trainAddress = reader.text("train_address", "");
  node.pricePerHour = reader.number("price_per_hour", {0.0, 1e9}, 0.0);
  node.extra = reader.rest();
  cluster.nodes.push_back(std::move(node));
}

void readSwitch(JsonReader& reader, Cluster& cluster) {
  Switch result;
  result.name = reader.text("name");
  result.members = reader.texts("members");
  result.bandwidth = fromGbs(reader.number("bandwidth_gbs", kBandwidth));
  result.total = fromGbs(reader.number("total_gbs", {0.0, 1e9}, 0.0));
  result.latency = fromMicroseconds(reader.number("latency_us", kLatency, 0.0));
  result.extra = reader.rest();
  cluster.switches.push_back(std::move(result));
}

void readLink(JsonReader& reader, Cluster& cluster) {
  const std::vector<std::string> ends = reader.texts("between");
  Link link;
  link.spec.bandwidth = fromGbs(reader.number("bandwidth_gbs", kBandwidth));
  link.spec.latency = fromMicroseconds(reader.number("latency_us", kLatency, kDefaultNicLatencyUs));
  link.spec.table = readMessageRates(reader, "bandwidth_table");
  link.extra = reader.rest();
  std::vector<int> indices;
  for (const std::string& end : ends) {
    const auto found = std::ranges::find(cluster.nodes, end, &Node::name);
    if (found == cluster.nodes.end()) reader.fail("between", fmt::format("names \"{}\", which is no node", end));
    else indices.push_back(static_cast<int>(found - cluster.nodes.begin()));
  }
  if (indices.size() != 2 || indices[0] == indices[1]) {
    reader.fail("between", "does not name two unlike nodes", "expected [\"a\", \"b\"]");
    return;
  }
  link.first = indices[0];
  link.second = indices[1];
  cluster.links.push_back(link);
}

Json devicesJson(const Cluster& cluster, const Node& node) {
  const auto typeName = [&](const Device& device) { return cluster.deviceTypes[static_cast<std::size_t>(device.type)].name; };
  const bool uniform = std::ranges::all_of(node.devices, [&](const Device& d) { return d == node.devices.front() && d.uuid.empty(); });
  Json json;
  if (uniform) {
    json["type"] = typeName(node.devices.front());
    json["count"] = node.devices.size();
    return json;
  }
  json = Json::array();
  for (const Device& device : node.devices) {
    Json entry;
    entry["type"] = typeName(device);
    if (!device.uuid.empty()) entry["uuid"] = device.uuid;
    json.push_back(std::move(entry));
  }
  return json;
}

Json sshJson(const SshTarget& ssh) {
  Json json;
  json["host"] = ssh.host;
  if (ssh.port != SshTarget{}.port) json["port"] = ssh.port;  // else ~/.ssh/config may say which
  if (!ssh.user.empty()) json["user"] = ssh.user;
  if (!ssh.identity.empty()) json["identity"] = ssh.identity;
  if (!ssh.proxyJump.empty()) json["proxy_jump"] = ssh.proxyJump;
  if (!ssh.knownHosts.empty()) json["known_hosts"] = ssh.knownHosts;
  addUnknownFields(json, ssh.extra);
  return json;
}

Json nodeJson(const Cluster& cluster, const Node& node) {
  Json json;
  json["name"] = node.name;
  json["devices"] = devicesJson(cluster, node);
  json["intra_bandwidth_gbs"] = rounded(gbs(node.intra.bandwidth));
  json["intra_latency_us"] = rounded(microseconds(node.intra.latency));
  json["nic_bandwidth_gbs"] = rounded(gbs(node.nic.bandwidth));
  json["nic_per_device"] = node.nicPerDevice;
  json["nic_latency_us"] = rounded(microseconds(node.nic.latency));
  if (!node.intra.table.empty()) json["intra_bandwidth_table"] = toJson(node.intra.table);
  if (!node.nic.table.empty()) json["nic_bandwidth_table"] = toJson(node.nic.table);
  if (!node.ssh.host.empty()) json["ssh"] = sshJson(node.ssh);
  if (!node.trainAddress.empty()) json["train_address"] = node.trainAddress;
  if (node.pricePerHour > 0) json["price_per_hour"] = node.pricePerHour;
  addUnknownFields(json, node.extra);
  return json;
}

}  // namespace

Cluster readCluster(JsonReader& reader, Drawn drawn) {
  Cluster cluster;
  expectFormat(reader, kClusterFormat);
  for (JsonReader& entry : reader.optionalObjects("device_types")) {
    cluster.deviceTypes.push_back(readDeviceType(entry));
    const std::string& name = cluster.deviceTypes.back().name;
    if (std::ranges::count(cluster.deviceTypes, name, &DeviceType::name) > 1) {
      entry.fail("name", fmt::format("\"{}\" is defined twice", name));
    }
  }
  for (JsonReader& entry : reader.objects("nodes")) {
    if (reader.context().error) return cluster;
    readNode(entry, cluster);
  }
  if (reader.context().error) return cluster;
  if (cluster.nodes.empty() && drawn == Drawn::Finished) reader.fail("nodes", "is empty", "expected at least one node");
  if (cluster.deviceCount() > kMaxDevices) {
    reader.fail("nodes", fmt::format("hold {} devices", cluster.deviceCount()), fmt::format("the limit is {}", kMaxDevices));
  }
  for (JsonReader& entry : reader.optionalObjects("switches")) readSwitch(entry, cluster);
  for (JsonReader& entry : reader.optionalObjects("links")) readLink(entry, cluster);
  cluster.extra = reader.rest();
  if (!reader.context().error) checkTopology(cluster, reader);
  return cluster;
}

Json toJson(const Cluster& cluster) {
  Json json;
  json["format"] = kClusterFormat;
  json["device_types"] = Json::array();
  for (const DeviceType& type : cluster.deviceTypes) json["device_types"].push_back(toJson(type));
  json["nodes"] = Json::array();
  for (const Node& node : cluster.nodes) json["nodes"].push_back(nodeJson(cluster, node));
  for (const Switch& s : cluster.switches) {
    Json entry;
    entry["name"] = s.name;
    entry["members"] = s.members;
    entry["bandwidth_gbs"] = rounded(gbs(s.bandwidth));
    if (s.total.value > 0) entry["total_gbs"] = rounded(gbs(s.total));
    entry["latency_us"] = rounded(microseconds(s.latency));
    addUnknownFields(entry, s.extra);
    json["switches"].push_back(std::move(entry));
  }
  for (const Link& link : cluster.links) {
    Json entry;
    entry["between"] = {cluster.nodes[static_cast<std::size_t>(link.first)].name, cluster.nodes[static_cast<std::size_t>(link.second)].name};
    entry["bandwidth_gbs"] = rounded(gbs(link.spec.bandwidth));
    entry["latency_us"] = rounded(microseconds(link.spec.latency));
    if (!link.spec.table.empty()) entry["bandwidth_table"] = toJson(link.spec.table);
    addUnknownFields(entry, link.extra);
    json["links"].push_back(std::move(entry));
  }
  addUnknownFields(json, cluster.extra);
  return json;
}

Result<Cluster> loadCluster(const std::filesystem::path& file) {
  auto json = readJsonFile(file);
  if (!json) return std::move(json).error();
  JsonContext context{file.string(), {}};
  JsonReader reader(*json, context);
  Cluster cluster = readCluster(reader);
  if (context.error) return *std::move(context.error);
  return cluster;
}

Result<Cluster> parseClusterShorthand(std::string_view text) {
  static constexpr const char* kForm = "expected NODESxDEVICES:TYPE[@SPEED][,...], for example 2x8:A100-80-SXM,1x2:cpu@0.5, or a cluster file";
  Cluster cluster;
  std::map<std::string, int> namesUsed;
  std::string_view rest = text;
  for (bool more = true; more;) {
    const std::size_t comma = rest.find(',');
    more = comma != std::string_view::npos;
    const std::string_view part = rest.substr(0, comma);
    rest = more ? rest.substr(comma + 1) : std::string_view{};

    const std::string where = fmt::format("cluster \"{}\"", part.substr(0, 80));
    const std::size_t x = part.find('x');
    const std::size_t colon = part.find(':');
    if (x == std::string_view::npos || colon == std::string_view::npos || x > colon) return invalidInput(where, "is no cluster", kForm);
    const auto nodes = parseNumber<int>(part.substr(0, x));
    const auto devices = parseNumber<int>(part.substr(x + 1, colon - x - 1));
    if (!nodes || !devices || *nodes < 1 || *devices < 1) {
      return invalidInput(where, "the numbers of nodes and devices are not whole numbers of at least 1", kForm);
    }
    if (static_cast<std::int64_t>(*nodes) * *devices + cluster.deviceCount() > kMaxDevices) {
      return invalidInput(where, "has too many devices", fmt::format("the limit is {}", kMaxDevices));
    }
    const std::string typeName(part.substr(colon + 1));
    const auto type = typeIndex(cluster, typeName);
    if (!type) return invalidInput(where, fmt::format("\"{}\" {}", typeName.substr(0, 80), type.error().what), type.error().remedy);

    const std::string base = lowerCase(typeName.substr(0, typeName.find('@')));
    for (int i = 0; i < *nodes; ++i) {
      Node node;
      node.name = fmt::format("{}-{}", base, namesUsed[base]++);
      node.devices.assign(static_cast<std::size_t>(*devices), Device{*type, ""});
      setDefaultLinks(cluster, node);
      cluster.nodes.push_back(std::move(node));
    }
  }
  return cluster;
}

Result<Cluster> clusterFromArgument(const std::string& argument) {
  std::error_code failure;
  const bool looksLikeFile = std::filesystem::exists(argument, failure) || argument.ends_with(".json") ||
                             argument.find(':') == std::string::npos;
  return looksLikeFile ? loadCluster(argument) : parseClusterShorthand(argument);
}

}  // namespace evenkeel
