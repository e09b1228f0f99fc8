// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "app/cli/command.h"
#include "app/cli/follow.h"
#include "app/cli/login_prompt.h"
#include "launcher/deploy/bundle.h"
#include "launcher/deploy/packed_file.h"
#include "launcher/deploy/pairs.h"
#include "launcher/deploy/probe.h"

namespace evenkeel::cli {
namespace {

namespace fs = std::filesystem;
constexpr std::chrono::milliseconds kConnect{15'000}, kCommand{60'000};

struct Measured {
  std::unique_ptr<Host> host;
  PairNode pair;
  std::optional<Error> error;
};

/// Connects, and puts the agent there.
Result<void> prepare(Measured& node, const Node& drawn, const Connector& connect, const Bundle& agent, const fs::path& cache,
                     const std::stop_token& stop) {
  auto host = connect(drawn.ssh, drawn.name, kConnect, stop);
  if (!host) return std::move(host).error();
  node.host = *std::move(host);
  const auto facts = probe(*node.host, kCommand, stop);
  if (!facts) return facts.error();
  const auto missing = missingFiles(*node.host, facts->cacheDirectory, agent, kCommand, stop);
  if (!missing) return missing.error();
  CopyOptions options{.packed = cache / "packed", .packer = {}};
  for (const std::string& packer : packersHere()) {
    if (options.packer.empty() && std::ranges::find(facts->unpackers, packer) != facts->unpackers.end()) options.packer = packer;
  }
  if (auto copied = copyFiles(*node.host, facts->cacheDirectory, agent, *missing, options, {}, stop); !copied) return copied;
  node.pair = {.name = drawn.name,
               .host = node.host.get(),
               .agent = facts->cacheDirectory + "/" + agent.directory + "/evenkeel-agent",
               .address = drawn.trainAddress.empty() ? node.host->address() : drawn.trainAddress};
  return {};
}

}  // namespace

Result<void> measureLinks(Cluster& cluster, const std::stop_token& stop) {
  if (cluster.nodes.size() < 2) return invalidInput("--measure", "needs two nodes at least", "name more hosts");
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const fs::path cache =
      (xdg != nullptr && *xdg == '/' ? fs::path(xdg) : fs::path(home == nullptr ? "/tmp" : home) / ".cache") / "evenkeel";
  const auto agent = slimBundle(programFolder(), cache, {"evenkeel-agent"});
  if (!agent) return agent.error();
  const Connector connect = connectorForTerminal();
  std::vector<Measured> nodes(cluster.nodes.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      threads.emplace_back([&, i] {
        if (auto prepared = prepare(nodes[i], cluster.nodes[i], connect, *agent, cache, stop); !prepared)
          nodes[i].error = prepared.error();
      });
    }
  }
  std::string here;  // this machine as others see it
  for (const Measured& node : nodes) {
    if (node.error) return *node.error;
    if (here.empty()) here = node.host->addressOfThisEnd();
  }
  std::vector<PairNode> pairs;
  for (Measured& node : nodes) {
    if (node.pair.address.empty()) node.pair.address = here;
    if (node.pair.address.empty())
      return invalidInput(node.pair.name, "its address is not known here", "give the node a train_address in the cluster file");
    pairs.push_back(node.pair);
  }
  const std::vector<Bytes> sizes{{64 << 10}, {1 << 20}, {16 << 20}};
  const auto tell = [&](const PairRate& rate) {
    note("{} - {}: {:.3g} GB/s, {:.0f} us\n", pairs[rate.first].name, pairs[rate.second].name, gbs(rate.link.bandwidth),
         rate.link.latency.value * 1e6);
  };
  const auto rates = measurePairs(pairs, sizes, kCommand, tell, stop);
  if (!rates) return rates.error();
  for (const PairRate& rate : *rates) {
    const int first = static_cast<int>(rate.first), second = static_cast<int>(rate.second);
    const auto drawn = std::ranges::find_if(
        cluster.links, [&](const Link& link) { return std::minmax(link.first, link.second) == std::minmax(first, second); });
    if (drawn != cluster.links.end()) drawn->spec = rate.link;
    else cluster.links.push_back({.first = first, .second = second, .spec = rate.link});
  }
  return {};
}

}  // namespace evenkeel::cli
