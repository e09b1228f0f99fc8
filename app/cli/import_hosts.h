// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "core/cluster/cluster.h"

namespace evenkeel::cli {

/// Lists of hosts that others keep, and what the list does not say: the type of the devices, and how many a host has.
struct HostListArguments {
  std::string kind;   // "hostfile", "slurm", "ssh-config"
  std::string path;   // a file; of slurm also the list itself, "gpu[01-08]"
  std::string device; // a name of `devices`
  int count = 1;      // where the list has no slots
};
[[nodiscard]] bool isHostList(const std::string& kind);
[[nodiscard]] Result<Cluster> clusterFromHosts(const HostListArguments& arguments);

}  // namespace evenkeel::cli
