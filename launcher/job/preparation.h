// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launcher/deploy/data.h"
#include "launcher/deploy/probe.h"
#include "launcher/discover/discover.h"
#include "launcher/job/layout.h"
#include "launcher/job/slurm.h"

namespace evenkeel {

/// A node between the first look and the start.
struct PreparedNode {
  NodeLayout layout;
  SshTarget ssh;
  std::unique_ptr<Host> host;  // null until it was reached
  NodeFacts facts;
  std::string programs;  // folder of agent and worker there
  std::string data;      // the packed training text there
  std::string trainAddress;
  std::vector<BundleFile> missingPrograms, missingData;  // there
  std::shared_ptr<const Bundle> bundle;                  // what it is to have; null: our worker for CPU cores
  std::string torch;                                     // the LibTorch of its worker; empty: that of ours for CPU cores
  std::string torchLibraries;                            // its own LibTorch, where that is used
  std::optional<FoundHost> found;                        // of nodes whose ranks are on cards
  Run::Environment environment;                          // that the nodes' addresses and cards call for; a person's own wins
  bool isLogin = false;  // a login node of Slurm: whatever goes to the nodes goes to its folder, also if it is this machine
  [[nodiscard]] bool isHere() const { return ssh.host.empty() && !isLogin; }
};

/// What comes before a start, on all nodes at once: look, then copy. Every finding is a row that is told to the observer.
class Preparation {
 public:
  Preparation(const LaunchRequest& request, std::filesystem::path localCache, const Connector& connect, JobObserver& observer,
              std::stop_token stop);

  /// Changes nothing on any node.
  void examine();
  /// Copies what is missing, tries the programs, then lets the nodes connect to each other. After an examine() without
  /// objections.
  void copy();

  [[nodiscard]] const std::vector<PreflightRow>& rows() const { return rows_; }
  /// All objections as one Error; nothing if there is none.
  [[nodiscard]] std::optional<Error> objection() const;

  /// For Slurm: the login node alone.
  [[nodiscard]] std::vector<PreparedNode>& nodes() { return nodes_; }
  /// For Slurm only.
  [[nodiscard]] const std::vector<std::string>& sbatch() const { return sbatch_; }
  [[nodiscard]] const SlurmMatch& slurmMatch() const { return slurmMatch_; }
  [[nodiscard]] const PackedData& data() const { return *data_; }

 private:
  void tell(PreflightRow row, Error::Code code = Error::Code::Failed);
  void object(const std::string& node, const std::string& check, const Error& error);
  void examineTargets();
  void examinePlan();
  void examineData();
  void examineSlurm();
  void examineNode(PreparedNode& node);
  void examineCards(PreparedNode& node);
  void examineTorches();
  void examineNccl();
  void examineInterfaces();
  void examineDisk(const PreparedNode& node);
  void examinePrograms(PreparedNode& node);
  void examineAddresses();
  void examineConnections();
  void copyTo(PreparedNode& node);
  void tryOut(PreparedNode& node);
  [[nodiscard]] const Bundle& bundleFor(const PreparedNode& node) const { return node.bundle ? *node.bundle : *programs_; }
  [[nodiscard]] bool isLoopbackEnough() const;

  const LaunchRequest& request_;
  std::filesystem::path localCache_;
  const Connector& connect_;
  JobObserver& observer_;
  std::stop_token stop_;
  std::optional<Bundle> programs_;
  std::vector<std::string> packers_;  // of this machine
  std::optional<PackedData> data_;
  std::vector<PreparedNode> nodes_;
  std::vector<std::string> sbatch_;  // options
  SlurmMatch slurmMatch_;
  std::mutex mutex_;  // of the observer and of what follows
  std::vector<PreflightRow> rows_;
  std::optional<Error::Code> firstCode_;
};

/// A node that the run's environment names and the plan's cluster does not have.
[[nodiscard]] std::optional<Error> objectionToEnvironment(const LaunchRequest& request);

/// Calls f(i) for each i below count, each in a thread of its own, and waits for all.
void inParallel(std::size_t count, const std::function<void(std::size_t)>& f);

}  // namespace evenkeel
