// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/discover/discover.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/cli/command.h"
#include "app/cli/interrupt.h"
#include "app/cli/login_prompt.h"
#include "app/cli/measure.h"
#include "app/cli/table.h"

namespace evenkeel::cli {
namespace {

struct Arguments {
  std::string hosts, hostfile, identity, knownHosts, out;
  bool local = false, withBusy = false, measure = false, asJson = false;
};

Result<std::vector<ListedHost>> hostsOf(const Arguments& arguments) {
  std::vector<ListedHost> hosts;
  if (arguments.local) hosts.push_back({.name = "this-machine", .slotCount = {}, .ssh = {}});
  if (!arguments.hostfile.empty()) {
    const auto text = readFile(arguments.hostfile);
    if (!text) return text.error();
    auto listed = parseHostfile(*text, arguments.hostfile);
    if (!listed) return std::move(listed).error();
    hosts.insert(hosts.end(), listed->begin(), listed->end());
  }
  if (!arguments.hosts.empty()) {
    auto named = parseHosts(arguments.hosts);
    if (!named) return invalidInput("--hosts", named.error().where + ": " + named.error().what, named.error().remedy);
    hosts.insert(hosts.end(), named->begin(), named->end());
  }
  for (ListedHost& host : hosts) {
    if (host.ssh.host.empty()) continue;
    host.ssh.identity = arguments.identity;
    host.ssh.knownHosts = arguments.knownHosts;
  }
  if (hosts.empty()) return invalidInput("discover", "says no host", "add --hosts a,b,c, --hostfile FILE or --local");
  return hosts;
}

void print(const FoundHost& found) {
  for (const DiscoveryRow& row : found.rows) {
    note("{} {}: {}: {}{}\n", row.passed ? " ok " : " !! ", found.host.name, row.check, row.detail, row.remedy.empty() ? "" : "; " + row.remedy);
  }
}

int run(const Arguments& arguments) {
  if (auto checked = checkOutput("--out", arguments.out); !checked) return report(checked.error());
  auto hosts = hostsOf(arguments);
  if (!hosts) return report(hosts.error());
  std::stop_source stop;
  const InterruptWatch watch([&](int) { stop.request_stop(); });
  DiscoveryRequest request;
  request.hosts = *std::move(hosts);
  request.connect = connectorForTerminal();
  request.onHost = print;
  std::vector<FoundHost> found = discover(request, stop.get_token());
  if (arguments.withBusy) {
    for (FoundHost& host : found) {
      for (FoundHost::Slot& slot : host.found) slot.isTicked = slot.isTicked || (!slot.type.empty() && slot.device.problem.empty());
    }
  }
  std::vector<std::pair<std::string, FoundTorch>> torches;
  for (const FoundHost& host : found) {
    if (host.torch) torches.emplace_back(host.host.name, *host.torch);
  }
  if (const std::string unlike = unlikeNccl(torches); !unlike.empty())
    note(" !! all hosts: torch: {}; ranks of unlike versions do not understand each other\n", unlike);
  auto cluster = clusterOf(found);
  if (cluster && arguments.measure) {
    if (auto measured = measureLinks(*cluster, stop.get_token()); !measured) return report(measured.error());
  }
  if (cluster && !arguments.out.empty()) {
    if (auto written = writeFileAtomically(arguments.out, prettyText(toJson(*cluster))); !written) return report(written.error());
  }
  if (arguments.asJson) printJson({{"hosts", toJson(found)}, {"cluster", cluster ? toJson(*cluster) : Json()}});
  if (!cluster) return report(cluster.error());
  if (!arguments.asJson) {
    std::vector<std::vector<std::string>> rows = {{"node", "devices", "NIC"}};
    for (const Node& node : cluster->nodes) {
      rows.push_back({node.name, fmt::format("{} x {}", node.devices.size(), cluster->deviceTypes[static_cast<std::size_t>(node.devices.front().type)].name),
                      fmt::format("{:.3g} GB/s{}", gbs(node.nic.bandwidth), node.nicPerDevice ? " a device" : "")});
    }
    fmt::print("{}", alignedTable(rows));
    if (arguments.out.empty()) fmt::print("add --out cluster.json to keep it\n");
    else fmt::print("written: {}; next: evenkeel-cli plan --cluster {} --model NAME\n", arguments.out, arguments.out);
  }
  const auto missed = static_cast<std::size_t>(std::ranges::count(found, false, &FoundHost::reached));
  if (missed == 0) return kOk;
  return report(failed("discover", fmt::format("{} of {} hosts could not be examined", missed, found.size()), "the rows above say why"));
}

}  // namespace

void addDiscover(CLI::App& app, Outcome& outcome) {
  CLI::App* command = app.add_subcommand("discover", "Look at machines over SSH, read-only: devices, links, network; makes a cluster file");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("--hosts", arguments->hosts, "Hosts: a,b or gpu[01-08], each [USER@]HOST[:PORT] or an alias of ~/.ssh/config");
  command->add_option("--hostfile", arguments->hostfile, "Hosts of a DeepSpeed or MPI hostfile");
  command->add_option("--identity", arguments->identity, "File of the private key for all of them (default: as ~/.ssh/config says)");
  command->add_option("--known-hosts", arguments->knownHosts, "File of the host keys that are trusted (default: ~/.ssh/known_hosts)");
  command->add_flag("--local", arguments->local, "This machine too");
  command->add_flag("--with-busy", arguments->withBusy, "Take devices that somebody uses, too");
  command->add_flag("--measure", arguments->measure,
                    "Measure the connections between the nodes too and write them as links; copies evenkeel-agent there");
  command->add_option("--out", arguments->out, "Write the cluster to this file");
  command->add_flag("--json", arguments->asJson, "What was found, and the cluster, as one JSON document on stdout");
  command->callback([arguments, &outcome] { outcome.exitCode = run(*arguments); });
}

}  // namespace evenkeel::cli
