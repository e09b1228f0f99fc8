// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/job/layout.h"

#include <fmt/format.h>

#include <array>
#include <ctime>
#include <random>

#include "launcher/ssh/local_host.h"
#include "launcher/ssh/ssh_host.h"

namespace evenkeel {

std::vector<NodeLayout> layoutOf(const Plan& plan) {
  std::vector<NodeLayout> layouts;
  int rank = 0;
  for (const DeviceId device : plan.usedDevices()) {
    if (layouts.empty() || layouts.back().node != device.node) {
      layouts.push_back({.node = device.node, .name = plan.cluster.nodes[static_cast<std::size_t>(device.node)].name});
    }
    std::vector<NodeJob::Rank>& ranks = layouts.back().ranks;
    ranks.push_back({.rank = rank++, .localRank = static_cast<int>(ranks.size()), .device = plan.cluster.nameOf(device)});
  }
  return layouts;
}

std::string newRunId() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y%m%d-%H%M%S", &parts);
  return fmt::format("{}-{:04x}", std::string_view(text.data(), length), std::random_device{}() & 0xffffU);
}

Json jobFileOf(const std::string& runId, const LaunchRequest& request, const std::string& dataPath, const PackedData& data) {
  const auto seconds = [](std::chrono::milliseconds time) { return std::chrono::duration<double>(time).count(); };
  Json json;
  json["format"] = "evenkeel.job/1";
  json["run_id"] = runId;
  json["plan"] = toJson(request.plan);
  json["run"] = toJson(request.run);
  // for each node its own stands in node.json, and the end is the workstation's business: neither belongs into every journal
  for (const char* key : {"environment", "end_command"}) json["run"].erase(key);
  if (!request.resume.empty()) json["resume"] = request.resume;
  json["data"] = Json{{"train", dataPath}, {"sha256", data.trainSha256}, {"train_bytes", data.trainBytes}};
  if (!data.isText) json["data"]["token_type"] = name(data.token);
  json["timeouts"] = Json{{"peer_s", seconds(request.timeouts.peer)}, {"start_s", seconds(request.timeouts.start)}};
  return json;
}

std::string runDirectoryOf(const std::string& runId, std::size_t nodeRank) {
  return fmt::format("runs/{}/node-{}", runId, nodeRank);
}

SshTarget targetOf(const LaunchRequest& request, const NodeLayout& layout) {
  return request.local ? SshTarget{} : request.plan.cluster.nodes[static_cast<std::size_t>(layout.node)].ssh;
}

Result<std::unique_ptr<Host>> connectTo(const SshTarget& target, const std::string& name, std::chrono::milliseconds deadline,
                                        std::stop_token stop, LoginHelp* help) {
  if (target.host.empty()) return std::unique_ptr<Host>(std::make_unique<LocalHost>(name));
  SshAddress address{.host = target.host,
                     .user = target.user,
                     .identity = target.identity,
                     .knownHosts = target.knownHosts,
                     .proxyJump = target.proxyJump};
  if (target.port != SshTarget{}.port) address.port = target.port;  // 22 is what a file means that names no port
  return connectSsh(name, address, deadline, std::move(stop), help);
}

Connector connectorAsking(std::shared_ptr<LoginAdvisor> advisor) {
  return [advisor = std::move(advisor)](const SshTarget& target, const std::string& name, std::chrono::milliseconds deadline,
                                        const std::stop_token& stop) {
    while (true) {
      LoginHelp help{advisor->secrets(), {}};
      auto host = connectTo(target, name, deadline, stop, &help);
      if (host || !help.obstacle || !advisor->settle(name, *help.obstacle, stop)) return host;
    }
  };
}

}  // namespace evenkeel
