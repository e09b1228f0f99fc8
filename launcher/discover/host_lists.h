// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/cluster/cluster.h"

namespace evenkeel {

/// A host that a list of others names, and how many devices it is said to have.
struct ListedHost {
  std::string name;  // as written: a name, a numeric address of either family
  std::optional<int> slotCount;
  SshTarget ssh;
  bool operator==(const ListedHost&) const = default;
};

/// "[user@]host[:port]", "[v6]:port"; numeric addresses of both families pass through untouched. Errors name the text.
[[nodiscard]] Result<ListedHost> parseHost(std::string_view text);

/// A node list (node_list.h) of such hosts: "gpu[01-08],me@other:2222".
[[nodiscard]] Result<std::vector<ListedHost>> parseHosts(std::string_view list);

/// A hostfile as DeepSpeed, Open MPI, MPICH and Intel MPI read them, one host a line: "worker-1 slots=4 max_slots=8",
/// "worker-1:4", "worker-1"; # begins a comment. Hosts that stand twice are an error that names both lines, and so is a line that is
/// no host, a template left as it was ("{line}", DeepSpeed #3669) included. `source` is for messages.
[[nodiscard]] Result<std::vector<ListedHost>> parseHostfile(std::string_view text, const std::string& source);

/// The hosts that an ssh configuration names one by one: aliases of `Host` lines without a pattern, of included files too (globs and
/// relative paths as in ssh_config(5), at most 16 deep). The rest (HostName, Port, User, keys, jumps) is read again at each login, so that
/// an alias is enough.
[[nodiscard]] Result<std::vector<ListedHost>> readSshConfig(const std::filesystem::path& file);

/// A cluster of these hosts: `type` on each, as many as it has slots (`otherwise` where none are said).
[[nodiscard]] Result<Cluster> clusterOf(const std::vector<ListedHost>& hosts, const std::string& type, int otherwise);

}  // namespace evenkeel
