// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/job/starter.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "core/base/units.h"
#include "launcher/job/records.h"

namespace evenkeel {
namespace {

/// The agent's own message, without the program's name before it and the line's end after it.
std::string messageOf(const CommandOutput& output) {
  std::string text = output.err;
  constexpr std::string_view kPrefix = "evenkeel-agent: ";
  if (text.starts_with(kPrefix)) text.erase(0, kPrefix.size());
  while (text.ends_with('\n')) text.pop_back();
  return text.empty() ? output.ending.text() : text;
}

}  // namespace

RunRecord newRecord(const LaunchRequest& request) {
  RunRecord record{.id = newRunId(),
                   .created = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(),
                   .plan = toJson(request.plan),
                   .run = toJson(request.run),
                   .nodes = {},
                   .timeouts = request.timeouts,
                   .predictedIterationMs = {},
                   .failed = {},
                   .continues = request.continues,
                   .slurm = {}};
  if (request.plan.predicted) {
    const double tempo = request.run.rehearsal ? request.run.rehearsal->timeScale : 1.0;
    record.predictedIterationMs = tempo * milliseconds(request.plan.predicted->iteration);
  }
  return record;
}

NodeJob nodeJobOf(const LaunchRequest& request, const RunRecord& record, const NodeLayout& layout, std::size_t nodeRank,
                  const std::string& programs, Run::Environment environment) {
  for (const auto& [name, value] : request.run.environment) environment[name] = value;
  if (const auto own = request.run.nodeEnvironment.find(layout.name); own != request.run.nodeEnvironment.end()) {
    for (const auto& [name, value] : own->second) environment[name] = value;
  }
  return {.runId = record.id,
          .node = layout.name,
          .nodeRank = static_cast<int>(nodeRank),
          .worldSize = record.worldSize,
          .ranks = layout.ranks,
          .trainAddress = {},
          .masterAddress = {},
          .hostsStore = nodeRank == 0,
          .worker = programs + "/evenkeel-worker",
          .environment = std::move(environment)};
}

Result<void> putRunFiles(Host& host, const std::string& directory, const std::vector<RunFile>& files, const LaunchTimeouts& timeouts,
                         const std::stop_token& stop) {
  if (auto made = makeDirectory(host, directory, timeouts.command); !made) return made;
  for (const RunFile& file : files) {
    auto put = upload(host, {.bytes = file.bytes, .path = directory + "/" + file.name, .isProgram = file.isProgram, .silence = timeouts.command}, stop);
    if (!put) return put;
  }
  return {};
}

Starter::Starter(const LaunchRequest& request, Preparation& preparation, std::stop_token stop)
    : request_(request), preparation_(preparation), stop_(std::move(stop)), mayRun_(preparation.nodes().size(), 0) {
  record_ = newRecord(request);
  for (std::size_t i = 0; i < preparation_.nodes().size(); ++i) {
    const PreparedNode& node = preparation_.nodes()[i];
    const int rankCount = static_cast<int>(node.layout.ranks.size());
    record_.nodes.push_back({.name = node.layout.name,
                             .ssh = node.ssh,
                             .directory = node.facts.dataDirectory + "/" + runDirectoryOf(record_.id, i),
                             .agent = node.programs + "/evenkeel-agent",
                             .firstRank = record_.worldSize,
                             .rankCount = rankCount});
    record_.worldSize += rankCount;
  }
  masterAddress_ = preparation_.nodes().front().trainAddress;
}

/// Returns the port of the store if the node hosts it.
Result<int> Starter::startNode(std::size_t nodeRank) {
  PreparedNode& node = preparation_.nodes()[nodeRank];
  const JobNode& place = record_.nodes[nodeRank];
  NodeJob part = nodeJobOf(request_, record_, node.layout, nodeRank, node.programs, node.environment);
  part.trainAddress = node.trainAddress;
  part.masterAddress = masterAddress_;
  part.masterPort = masterPort_;
  const Json job = jobFileOf(record_.id, request_, node.data, preparation_.data());
  if (auto put = putRunFiles(*node.host, place.directory, {{kJobFile, prettyText(job)}, {kNodeFile, prettyText(toJson(part))}}, request_.timeouts, stop_); !put)
    return put.error();
  mayRun_[nodeRank] = 1;
  // the agent keeps the limit itself and says what was late; ours is for a machine that does not answer
  const auto limit = request_.timeouts.start + request_.timeouts.command;
  auto output = run(*node.host, {.argv = {place.agent, "run", "--dir", place.directory}, .deadline = limit}, stop_);
  if (!output) return std::move(output).error();
  if (!output->ending.wasGood()) return failed(node.layout.name, messageOf(*output));
  auto printed = parseJson(output->out, node.layout.name + ": evenkeel-agent run");
  if (!printed) return std::move(printed).error();
  return static_cast<int>(integerOf(*printed, "store_port"));
}

Result<void> Starter::start() {
  auto port = startNode(0);
  if (!port) {
    failedNode_ = record_.nodes.front().name;
    return port.error();
  }
  masterPort_ = *port;
  std::vector<std::optional<Error>> errors(record_.nodes.size());
  inParallel(record_.nodes.size() - 1, [&](std::size_t i) {
    if (auto started = startNode(i + 1); !started) errors[i + 1] = started.error();
  });
  std::optional<Error> all;
  for (std::size_t i = 0; i < errors.size(); ++i) {
    if (!errors[i]) continue;
    if (all) {
      all->what += "\n  " + errors[i]->text();
    } else {
      all = errors[i];
      failedNode_ = record_.nodes[i].name;
    }
  }
  if (all) return *std::move(all);
  return {};
}

std::vector<JobNode> Starter::started() const {
  std::vector<JobNode> nodes;
  for (std::size_t i = 0; i < mayRun_.size(); ++i) {
    if (mayRun_[i] != 0) nodes.push_back(record_.nodes[i]);
  }
  return nodes;
}

StopReport::Node stopNode(const JobNode& node, const Connector& connect, const LaunchTimeouts& timeouts) {
  StopReport::Node report{.node = node.name};
  auto host = connect(node.ssh, node.name, std::min(timeouts.connect, timeouts.stop), {});
  if (!host) {
    report.problem = host.error().text();
    return report;
  }
  auto output = run(**host, {.argv = {node.agent, "stop", "--dir", node.directory}, .deadline = timeouts.stop});
  if (!output) {
    report.problem = output.error().text();
    return report;
  }
  auto printed = parseJson(output->out, node.name);
  if (!printed || !printed->contains("left") || !(*printed)["left"].is_array()) {
    report.problem = messageOf(*output);
    return report;
  }
  for (const Json& pid : (*printed)["left"]) {
    if (pid.is_number_integer()) report.left.push_back(pid.get<int>());
  }
  report.stopped = report.left.empty();
  if (!report.stopped) report.problem = fmt::format("{} processes did not end", report.left.size());
  return report;
}

StopReport stopNodes(const std::vector<JobNode>& nodes, const Connector& connect, const LaunchTimeouts& timeouts) {
  StopReport report;
  report.nodes.resize(nodes.size());
  inParallel(nodes.size(), [&](std::size_t i) { report.nodes[i] = stopNode(nodes[i], connect, timeouts); });
  return report;
}

}  // namespace evenkeel
