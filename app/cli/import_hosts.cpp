// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/import_hosts.h"

#include <fmt/format.h>

#include "core/cluster/catalogue.h"
#include "launcher/discover/host_lists.h"

namespace evenkeel::cli {
namespace {

Result<std::vector<ListedHost>> hostsOf(const HostListArguments& arguments) {
  if (arguments.kind == "ssh-config") return readSshConfig(arguments.path);
  std::error_code failure;
  std::string text = arguments.path;
  if (arguments.kind == "hostfile" || std::filesystem::exists(arguments.path, failure)) {
    auto read = readFile(arguments.path);
    if (!read) return std::move(read).error();
    text = *std::move(read);
  }
  if (arguments.kind == "hostfile") return parseHostfile(text, arguments.path);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return parseHosts(text);
}

}  // namespace

bool isHostList(const std::string& kind) { return kind == "hostfile" || kind == "slurm" || kind == "ssh-config"; }

Result<Cluster> clusterFromHosts(const HostListArguments& arguments) {
  if (arguments.device.empty()) {
    return invalidInput("--device", "is missing: a list of hosts does not say which devices they have",
                        "name one of `evenkeel-cli devices`, or let `evenkeel-cli discover` look");
  }
  if (auto known = deviceTypeNamed(arguments.device); !known) return invalidInput("--device", fmt::format("\"{}\" {}", arguments.device, known.error().what), known.error().remedy);
  const auto hosts = hostsOf(arguments);
  if (!hosts) return hosts.error();
  return clusterOf(*hosts, arguments.device, arguments.count);
}

}  // namespace evenkeel::cli
