// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "launcher/job/history.h"
#include "launcher/job/preparation.h"

namespace evenkeel {

/// A record of a new run with all that does not depend on its nodes.
[[nodiscard]] RunRecord newRecord(const LaunchRequest& request);

/// What one node has to do, but for the addresses. What the run says of the environment wins over the given one.
[[nodiscard]] NodeJob nodeJobOf(const LaunchRequest& request, const RunRecord& record, const NodeLayout& layout,
                                std::size_t nodeRank, const std::string& programs,
                                Run::Environment environment = {});

/// A file that a run needs on a node before it starts.
struct RunFile {
  std::string name, bytes;
  bool isProgram = false;
};
/// Makes the run's directory there and puts the files into it.
[[nodiscard]] Result<void> putRunFiles(Host& host, const std::string& directory, const std::vector<RunFile>& files,
                                       const LaunchTimeouts& timeouts, const std::stop_token& stop);

/// Starts the agents of a prepared run: rank 0's node first, because its agent hosts the store and says its port, then all
/// others at once. Fills the run's record with where everything is.
class Starter {
 public:
  Starter(const LaunchRequest& request, Preparation& preparation, std::stop_token stop);

  [[nodiscard]] const RunRecord& record() const { return record_; }
  /// Nodes whose agent may run are in started(), also after an Error, which names each node that failed.
  [[nodiscard]] Result<void> start();
  [[nodiscard]] std::vector<JobNode> started() const;
  /// The node of the first failure.
  [[nodiscard]] const std::string& failedNode() const { return failedNode_; }

 private:
  Result<int> startNode(std::size_t nodeRank);

  const LaunchRequest& request_;
  Preparation& preparation_;
  std::stop_token stop_;
  RunRecord record_;
  std::string masterAddress_;
  int masterPort_ = 0;
  std::vector<char> mayRun_;  // by node rank; char, because threads write neighbours
  std::string failedNode_;
};

/// Ends a node's part of a run, within the limits of `timeouts.stop`.
[[nodiscard]] StopReport::Node stopNode(const JobNode& node, const Connector& connect, const LaunchTimeouts& timeouts);

/// All of them at once.
[[nodiscard]] StopReport stopNodes(const std::vector<JobNode>& nodes, const Connector& connect, const LaunchTimeouts& timeouts);

}  // namespace evenkeel
