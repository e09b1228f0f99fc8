// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/job/slurm_start.h"

#include <fmt/format.h>

#include <algorithm>

namespace evenkeel {

Json nodesFileOf(const LaunchRequest& request, const RunRecord& record, const std::vector<NodeLayout>& layouts, bool byName,
                 const std::string& programs) {
  Json file{{"format", "evenkeel.nodes/1"}, {"by_name", byName}, {"start_ms", request.timeouts.start.count()}, {"nodes", Json::array()}};
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    NodeJob part = nodeJobOf(request, record, layouts[i], i, programs);
    if (byName) part.trainAddress = request.plan.cluster.nodes[static_cast<std::size_t>(layouts[i].node)].trainAddress;
    file["nodes"].push_back(toJson(part));
  }
  return file;
}

SlurmStarter::SlurmStarter(const LaunchRequest& request, Preparation& preparation, std::stop_token stop)
    : request_(request), preparation_(preparation), stop_(std::move(stop)), layouts_(layoutOf(request.plan)), record_(newRecord(request)) {
  const PreparedNode& login = preparation_.nodes().front();
  record_.slurm = SlurmJob{.id = {}, .request = *request.slurm, .directory = login.facts.dataDirectory + "/runs/" + record_.id};
  for (std::size_t i = 0; i < layouts_.size(); ++i) {
    const int rankCount = static_cast<int>(layouts_[i].ranks.size());
    record_.nodes.push_back({.name = layouts_[i].name,
                             .ssh = login.ssh,
                             .directory = login.facts.dataDirectory + "/" + runDirectoryOf(record_.id, i),
                             .agent = login.programs + "/evenkeel-agent",
                             .firstRank = record_.worldSize,
                             .rankCount = rankCount});
    record_.worldSize += rankCount;
  }
}

Result<void> SlurmStarter::putFiles(Host& login) const {
  const PreparedNode& node = preparation_.nodes().front();
  const std::string& run = record_.slurm->directory;
  return putRunFiles(login, run,
                     {{kJobFile, prettyText(jobFileOf(record_.id, request_, node.data, preparation_.data()))},
                      {kNodesFile, prettyText(nodesFileOf(request_, record_, layouts_, preparation_.slurmMatch().byName, node.programs))},
                      {kSlurmScript, slurmScript(record_.nodes.front().agent, run, layouts_.size()), true}},
                     request_.timeouts, stop_);
}

Result<void> SlurmStarter::submit() {
  Host& login = *preparation_.nodes().front().host;
  if (auto put = putFiles(login); !put) return put;
  auto id = submitJob(login, preparation_.sbatch(), record_.slurm->directory, "evenkeel-" + record_.id, request_.timeouts.command, stop_);
  if (!id) return id.error();
  record_.slurm->id = *std::move(id);
  return {};
}

StopReport stopSlurm(const RunRecord& record, const Connector& connect) {
  StopReport report;
  for (const JobNode& node : record.nodes) report.nodes.push_back({.node = node.name, .stopped = false, .left = {}, .problem = {}});
  const auto cancel = [&]() -> Result<void> {
    if (record.slurm->id.empty()) return {};  // Slurm never had it
    auto login = connect(record.slurm->request.login, "the login node", std::min(record.timeouts.connect, record.timeouts.stop), {});
    if (!login) return login.error();
    return cancelJob(**login, record.slurm->id, record.timeouts.stop);
  };
  const auto cancelled = cancel();
  for (StopReport::Node& node : report.nodes) {
    node.stopped = cancelled.ok();
    if (!cancelled) node.problem = cancelled.error().text();
  }
  return report;
}

}  // namespace evenkeel
