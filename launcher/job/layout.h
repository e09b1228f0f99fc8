// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "launcher/agent/node_job.h"
#include "launcher/deploy/data.h"
#include "launcher/job/job.h"

namespace evenkeel {

/// A node that a plan uses: its place in the cluster and its ranks. Node rank k is the k-th of layoutOf().
struct NodeLayout {
  int node = 0;  // index in Cluster::nodes
  std::string name;
  std::vector<NodeJob::Rank> ranks;
  bool operator==(const NodeLayout&) const = default;
};

/// Rank r is the r-th used device of the plan, in the order of nodes: a node's ranks are consecutive.
[[nodiscard]] std::vector<NodeLayout> layoutOf(const Plan& plan);

/// "20261130-114501-ab12": UTC and four random digits.
[[nodiscard]] std::string newRunId();

/// job.json
[[nodiscard]] Json jobFileOf(const std::string& runId, const LaunchRequest& request, const std::string& dataPath,
                             const PackedData& data);

/// "runs/20261130-114501-ab12/node-0", below the node's data directory.
[[nodiscard]] std::string runDirectoryOf(const std::string& runId, std::size_t nodeRank);

/// How to reach a node for this request: no host if it is this machine.
[[nodiscard]] SshTarget targetOf(const LaunchRequest& request, const NodeLayout& layout);

/// LocalHost for no host, else SshHost.
[[nodiscard]] Result<std::unique_ptr<Host>> connectTo(const SshTarget& target, const std::string& name,
                                                      std::chrono::milliseconds deadline, std::stop_token stop = {},
                                                      LoginHelp* help = nullptr);

}  // namespace evenkeel
