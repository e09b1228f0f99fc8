// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/deploy/worker_builds.h"
#include "launcher/discover/discover.h"
#include "launcher/job/layout.h"

namespace evenkeel {

/// Whether ranks of a node are on cards, not on CPU cores.
[[nodiscard]] bool usesCards(const Plan& plan, const NodeLayout& layout);

/// What stands against training on a node's cards, found before anything is sent.
struct GpuCheck {
  std::vector<PreflightRow> rows;    // "devices", "torch"
  std::optional<WorkerBuild> build;  // that the node gets; none: ours for CPU cores
  std::string torchLibraries;        // folder of the node's own LibTorch, if it fits the build; empty: the build's own go along
};

/// Compares the plan's ranks there with the cards that are there (by uuid, else by number), their driver and compute capability with the
/// node's PyTorch, and that with the workers that were built.
[[nodiscard]] GpuCheck checkGpus(const FoundHost& found, const Plan& plan, const NodeLayout& layout, const std::vector<WorkerBuild>& builds);

/// Store and Gloo of unlike LibTorches do not understand each other, so that all nodes of a run need the same worker. `torchOf`: a node and
/// the LibTorch of its worker, empty for ours for CPU cores. Says who differs; empty: nobody.
[[nodiscard]] std::string unlikeTorches(const std::vector<std::pair<std::string, std::string>>& torchOf);

/// NCCL and Gloo choose an interface by its name: that which holds the address at which the nodes have reached each other. Nothing if the
/// host does not name it. `addresses` are lines "eth0 10.0.0.1".
[[nodiscard]] std::map<std::string, std::string> interfaceVariables(const std::vector<std::string>& addresses, const std::string& trainAddress);

}  // namespace evenkeel
