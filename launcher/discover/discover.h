// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/cluster/cluster.h"
#include "launcher/discover/device_reports.h"
#include "launcher/discover/host_lists.h"
#include "launcher/discover/network_report.h"
#include "launcher/discover/torch_report.h"
#include "launcher/ssh/host.h"

namespace evenkeel {

/// One thing that was looked at on one host.
struct DiscoveryRow {
  std::string check;  // "reachable", "devices", "network", "disk", "clock", ...
  bool passed = false;
  std::string detail, remedy;
  bool operator==(const DiscoveryRow&) const = default;
};

/// What one host is. Devices come with the catalogue's name of their type (empty: the catalogue has no figures of this product).
struct FoundHost {
  ListedHost host;
  bool reached = false;
  std::vector<DiscoveryRow> rows;
  struct Slot {
    FoundDevice device;
    std::string type;
    bool isTicked = false;  // known, without a problem and not busy: in the cluster unless somebody says otherwise
  };
  std::vector<Slot> found;  // not "slots": Qt takes that word
  std::optional<FoundTorch> torch;  // of hosts with GPUs
  std::string links;  // between the GPUs: "NV12", "PHB", ...; empty: unknown
  NodeNic nic;
  std::vector<std::string> addresses;  // "eth0 10.0.0.1"
  std::string architecture, libc;
  Bytes memory, diskFree;
};

/// What the answers of a host say; `now` is this machine's clock in seconds since the epoch. Never fails: what is missing is a row.
[[nodiscard]] FoundHost readAnswers(ListedHost host, std::string_view output, std::int64_t now);

/// Makes a connection to a host (launcher/job has the usual one, which may ask a person).
using HostConnector = std::function<Result<std::unique_ptr<Host>>(const SshTarget&, const std::string& name,
                                                                  std::chrono::milliseconds deadline, std::stop_token)>;

struct DiscoveryRequest {
  std::vector<ListedHost> hosts;
  HostConnector connect;
  std::chrono::milliseconds connectWithin{15'000}, answerWithin{60'000};
  std::function<void(const FoundHost&)> onHost;  // each as soon as it is known, one call at a time, from several threads; may be absent
};

/// Probes all hosts at once, read-only. The result has the order of the request; a host that cannot be reached, or that did not answer in
/// time, has reached = false and a row that says why. At most a few seconds more than the two deadlines.
[[nodiscard]] std::vector<FoundHost> discover(const DiscoveryRequest& request, const std::stop_token& stop = {});

/// A cluster of the ticked slots, one node a host, pinned by uuid where there is one; hosts without any are left out. An error if nothing
/// is left.
[[nodiscard]] Result<Cluster> clusterOf(const std::vector<FoundHost>& hosts);

[[nodiscard]] Json toJson(const std::vector<FoundHost>& hosts);

}  // namespace evenkeel
