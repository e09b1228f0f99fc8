// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "launcher/job/preparation.h"
#include "launcher/job/starter.h"

namespace evenkeel {

/// Puts a prepared run's files into the folder that the nodes share and hands it to Slurm, which starts it when it likes.
class SlurmStarter {
 public:
  SlurmStarter(const LaunchRequest& request, Preparation& preparation, std::stop_token stop);

  /// Its Slurm job has a number once submit() has succeeded.
  [[nodiscard]] const RunRecord& record() const { return record_; }
  [[nodiscard]] Result<void> submit();

 private:
  [[nodiscard]] Result<void> putFiles(Host& login) const;

  const LaunchRequest& request_;
  Preparation& preparation_;
  std::stop_token stop_;
  std::vector<NodeLayout> layouts_;
  RunRecord record_;
};

/// RUN/nodes.json
[[nodiscard]] Json nodesFileOf(const LaunchRequest& request, const RunRecord& record, const std::vector<NodeLayout>& layouts,
                               bool byName, const std::string& programs);

/// Ends the job and everything of it; a row a node.
[[nodiscard]] StopReport stopSlurm(const RunRecord& record, const Connector& connect);

}  // namespace evenkeel
