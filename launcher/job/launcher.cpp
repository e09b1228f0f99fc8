// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "launcher/job/end_of_run.h"
#include "launcher/job/follower.h"
#include "launcher/job/job.h"
#include "launcher/job/records.h"
#include "launcher/job/starter.h"
#include "launcher/ssh/quoting.h"

namespace evenkeel {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kQuick{4'000};  // for one node, when somebody waits for a status

/// $VARIABLE/evenkeel, by default below the home directory.
Result<fs::path> ownDirectory(const char* variable, const char* otherwise) {
  const char* base = std::getenv(variable);
  if (base != nullptr && *base == '/') return fs::path(base) / "evenkeel";
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home != '/') return invalidInput(variable, "is not set, and HOME is not either");
  return fs::path(home) / otherwise / "evenkeel";
}

Result<void> makePrivate(const fs::path& directory) {
  std::error_code failure;
  fs::create_directories(directory, failure);
  if (!failure) fs::permissions(directory, fs::perms::owner_all, failure);
  if (failure) return failed(directory.string(), failure.message());
  return {};
}

/// What a node has journaled since we last looked; nothing if it does not answer.
struct Glance {
  std::vector<Json> records;
  bool isGone = false;
};
std::optional<Glance> glanceAt(const JobNode& node, const Connector& connect, std::int64_t from) {
  auto host = connect(node.ssh, node.name, kQuick, {});
  if (!host) return std::nullopt;
  auto state = run(**host, {.argv = {node.agent, "status", "--dir", node.directory}, .deadline = kQuick});
  if (!state || !state->ending.wasGood()) return std::nullopt;
  auto printed = parseJson(state->out, node.name);
  if (!printed) return std::nullopt;
  Glance glance;
  glance.isGone = textOf(*printed, "state") == "lost";
  auto output = followLines(
      **host,
      {.argv = {node.agent, "tail", "--dir", node.directory, "--from", std::to_string(from), "--once"}, .deadline = kQuick},
      [&](std::string_view line) {
        if (auto record = parseRecord(line)) glance.records.push_back(*std::move(record));
      });
  if (!output) glance.isGone = false;  // what came is right, but it may not be all
  return glance;
}

}  // namespace

bool StopReport::complete() const { return std::ranges::all_of(nodes, &Node::stopped); }

Launcher::Launcher(std::unique_ptr<RunHistory> history, fs::path cacheDirectory, Connector connect)
    : history_(std::move(history)), cacheDirectory_(std::move(cacheDirectory)), connect_(std::move(connect)) {}
Launcher::Launcher(Launcher&&) noexcept = default;
Launcher& Launcher::operator=(Launcher&&) noexcept = default;
Launcher::~Launcher() = default;

Result<Launcher> Launcher::open() {
  return open([](const SshTarget& target, const std::string& name, std::chrono::milliseconds deadline, std::stop_token stop) {
    return connectTo(target, name, deadline, std::move(stop));
  });
}

Result<Launcher> Launcher::open(Connector connect) {
  auto data = ownDirectory("XDG_DATA_HOME", ".local/share");
  if (!data) return std::move(data).error();
  auto cache = ownDirectory("XDG_CACHE_HOME", ".cache");
  if (!cache) return std::move(cache).error();
  return open(*data, *cache, std::move(connect));
}

Result<Launcher> Launcher::open(const fs::path& dataDirectory, const fs::path& cacheDirectory, Connector connect) {
  for (const fs::path& directory : {dataDirectory, cacheDirectory}) {
    if (auto made = makePrivate(directory); !made) return made.error();
  }
  auto history = RunHistory::open(dataDirectory / "runs.sqlite");
  if (!history) return std::move(history).error();
  return Launcher(*std::move(history), cacheDirectory, std::move(connect));
}

Result<std::string> Launcher::lastCheckpointOf(const std::string& run) {
  std::string last;
  const auto replayed = history_->replay(run, [&](int, const Json& record) {
    if (eventOf(record) == "checkpoint") last = textOf(record, "path");
  });
  if (!replayed) return replayed.error();
  return last;
}

Result<std::vector<Json>> Launcher::recordsOf(const std::string& run, const std::string& event) {
  if (auto asked = statusOf(run); !asked) return std::move(asked).error();
  std::vector<Json> records;
  const auto replayed = history_->replay(run, [&](int, const Json& record) {
    if (eventOf(record) == event) records.push_back(record);
  });
  if (!replayed) return replayed.error();
  return records;
}

Result<std::vector<PreflightRow>> Launcher::preflight(const LaunchRequest& request, JobObserver& observer, std::stop_token stop) {
  Preparation preparation(request, cacheDirectory_, connect_, observer, stop);
  preparation.examine();
  if (stop.stop_requested()) return *preparation.objection();
  return preparation.rows();
}

Result<std::string> Launcher::startJob(const LaunchRequest& request, JobObserver& observer, std::stop_token stop) {
  observer.onState(JobState::Preparing);
  Preparation preparation(request, cacheDirectory_, connect_, observer, stop);
  preparation.examine();
  if (auto objection = preparation.objection()) return *std::move(objection);
  preparation.copy();
  if (auto objection = preparation.objection()) return *std::move(objection);
  Starter starter(request, preparation, stop);
  const std::string& id = starter.record().id;
  if (auto added = history_->add(starter.record()); !added) return added.error();
  const auto started = starter.start();
  if (started) {
    if (auto set = history_->setState(id, JobState::Running); !set) return set.error();
    observer.onState(JobState::Running);
    return id;
  }
  Error error = started.error();
  const StopReport report = stopNodes(starter.started(), connect_, request.timeouts);
  for (const StopReport::Node& node : report.nodes) {
    if (!node.stopped) error.what += fmt::format("\n  {} may still run: {}", node.node, node.problem);
  }
  if (stop.stop_requested()) {
    if (auto ended = endRun(*history_, starter.record(), JobState::Stopped, {}, &observer); !ended) return ended.error();
    observer.onState(JobState::Stopped);
    return Error{Error::Code::Cancelled, id, "was stopped while it was started", ""};
  }
  const JobFailure failure{.node = starter.failedNode(), .reason = started.error().text()};
  if (auto ended = endRun(*history_, starter.record(), JobState::Failed, failure, &observer); !ended) return ended.error();
  observer.onFailure(failure);
  observer.onState(JobState::Failed);
  return error;
}

Result<JobStatus> Launcher::followJob(const std::string& run, JobObserver& observer, std::stop_token stop) {
  auto record = history_->find(run);
  if (!record) return std::move(record).error();
  if (record->state == JobState::Preparing)
    return failed(run, "is still being started, or was left so", "stop it and start anew");
  return Follower(*history_, *std::move(record), connect_, observer, std::move(stop)).follow();
}

Result<StopReport> Launcher::stopJob(const std::string& run) {
  auto record = history_->find(run);
  if (!record) return std::move(record).error();
  if (!hasEnded(record->state)) {
    if (auto asked = history_->requestStop(run); !asked) return asked.error();
  }
  const StopReport report = stopNodes(record->nodes, connect_, record->timeouts);
  if (record->state == JobState::Preparing && report.complete()) {
    if (auto ended = endRun(*history_, *record, JobState::Stopped, {}, nullptr); !ended) return ended.error();
  }
  if (auto status = statusOf(run); !status) return status.error();
  return report;
}

Result<JobStatus> Launcher::statusOf(const std::string& run) {
  auto record = history_->find(run);
  if (!record) return std::move(record).error();
  if (record->state != JobState::Running) return history_->statusOf(run);
  std::vector<std::int64_t> from;
  for (std::size_t i = 0; i < record->nodes.size(); ++i) {
    auto last = history_->lastSeq(run, static_cast<int>(i));
    if (!last) return std::move(last).error();
    from.push_back(*last + 1);
  }
  std::vector<std::optional<Glance>> glances(record->nodes.size());
  inParallel(glances.size(), [&](std::size_t i) { glances[i] = glanceAt(record->nodes[i], connect_, from[i]); });
  Outcome outcome(*record);
  for (std::size_t i = 0; i < glances.size(); ++i) {
    if (!glances[i]) continue;
    if (auto appended = history_->append(run, static_cast<int>(i), glances[i]->records); !appended) return appended.error();
    if (glances[i]->isGone) outcome.takeGone(static_cast<int>(i));
  }
  auto replayed = history_->replay(run, [&](int node, const Json& known) { outcome.takeRecord(node, known); });
  if (!replayed) return replayed.error();
  if (outcome.allEnded()) {
    const Outcome::Verdict verdict = outcome.verdict();
    // a failed run that is to go on does so when somebody attaches, who must find it as one that nobody has looked after yet
    const bool goesOn = verdict.state == JobState::Failed && textOf(record->run, "on_failure") != name(Run::OnFailure::Stop);
    if (goesOn) {
      auto status = history_->statusOf(run);
      if (!status) return status;
      status->state = verdict.state;
      status->failed = verdict.failed;
      return status;
    }
    if (auto ended = endRun(*history_, *record, verdict.state, verdict.failed, nullptr); !ended) return ended.error();
  }
  return history_->statusOf(run);
}

Result<std::vector<RunRow>> Launcher::runs() { return history_->rows(); }

Result<std::string> Launcher::logOf(const std::string& run, int rank, std::size_t mostBytes) {
  auto record = history_->find(run);
  if (!record) return std::move(record).error();
  for (const JobNode& node : record->nodes) {
    if (rank < node.firstRank || rank >= node.firstRank + node.rankCount) continue;
    auto host = connect_(node.ssh, node.name, record->timeouts.connect, {});
    if (!host) return std::move(host).error();
    const std::string file = node.directory + "/" + logFileOf(rank);
    auto output = evenkeel::run(
        **host, {.argv = {"tail", "-c", std::to_string(mostBytes), "--", file}, .deadline = record->timeouts.command});
    if (!output) return std::move(output).error();
    if (!output->ending.wasGood())
      return failed(node.name, fmt::format("the log of rank {} cannot be read: {}", rank, output->err));
    return std::move(output->out);
  }
  return invalidInput(run, fmt::format("has no rank {}: its ranks are 0 to {}", rank, record->worldSize - 1));
}

Result<LaunchRequest> Launcher::requestOf(const std::string& run) {
  auto record = history_->find(run);
  if (!record) return std::move(record).error();
  LaunchRequest request;
  auto plan = parsePlan(record->plan, run + ": plan");
  if (!plan) return std::move(plan).error();
  request.plan = *std::move(plan);
  JsonContext context{run + ": run", {}};
  JsonReader reader(record->run, context);
  request.run = readRun(reader);
  if (context.error) return *std::move(context.error);
  request.local = std::ranges::all_of(record->nodes, [](const JobNode& node) { return node.ssh.host.empty(); });
  request.continues = record->continues;
  request.timeouts = record->timeouts;
  return request;
}

Result<int> Launcher::worldSizeOf(const std::string& run) {
  auto record = history_->find(run);
  if (!record) return std::move(record).error();
  return record->worldSize;
}

Result<std::int64_t> Launcher::totalStepsOf(const std::string& run) {
  auto record = history_->find(run);
  if (!record) return std::move(record).error();
  return integerOf(record->run, "steps");
}

Result<std::vector<std::string>> Launcher::dryRun(const LaunchRequest& request) {
  const auto isAway = [&](const NodeLayout& layout) { return !targetOf(request, layout).host.empty(); };
  const bool anyAway = std::ranges::any_of(layoutOf(request.plan), isAway);
  auto bundle = anyAway ? slimBundle(request.programs, cacheDirectory_) : programBundle(request.programs);
  if (!bundle) return std::move(bundle).error();
  const auto layouts = layoutOf(request.plan);
  if (layouts.empty()) return invalidInput("plan", "uses no devices");
  const std::string id = newRunId();
  std::size_t worldSize = 0;
  for (const NodeLayout& layout : layouts) worldSize += layout.ranks.size();
  std::vector<std::string> lines{fmt::format("# run {}: {} ranks on {} nodes; node {} hosts the store and is started first", id,
                                             worldSize, layouts.size(), layouts.front().name)};
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    const SshTarget target = targetOf(request, layouts[i]);
    const bool isHere = target.host.empty();
    // unquoted, so that the shell there puts its home directory in
    const std::string directory = "\"${XDG_DATA_HOME:-$HOME/.local/share}\"/evenkeel/" + runDirectoryOf(id, i);
    const std::string programs = isHere ? shellWord(fs::absolute(request.programs).string())
                                        : "\"${XDG_CACHE_HOME:-$HOME/.cache}\"/evenkeel/" + bundle->directory;
    std::vector<std::string> ssh;
    if (!isHere) {
      ssh = {"ssh"};
      if (target.port != SshTarget{}.port) ssh.insert(ssh.end(), {"-p", std::to_string(target.port)});  // else as ~/.ssh/config says
      if (!target.identity.empty()) ssh.insert(ssh.end(), {"-i", target.identity});
      if (!target.knownHosts.empty()) ssh.insert(ssh.end(), {"-o", "UserKnownHostsFile=" + target.knownHosts});
      if (!target.proxyJump.empty()) ssh.insert(ssh.end(), {"-J", target.proxyJump});
      ssh.push_back(target.user.empty() ? target.host : target.user + "@" + target.host);
    }
    const auto there = [&](const std::string& command) { return isHere ? command : shellLine(ssh) + " " + shellWord(command); };
    lines.push_back(fmt::format("# node {} ({}), node rank {}", layouts[i].name, isHere ? "this machine" : target.host, i));
    if (!isHere) {
      lines.push_back("# what is copied, as a command; launch itself sends only what lacks there");
      lines.push_back(fmt::format(
          "tar -C {} -cf - {} | {} {}", shellWord(bundle->files.front().file.parent_path().string()),
          anyAway && bundle->files.size() > 2 ? "evenkeel-agent evenkeel-worker lib" : "evenkeel-agent evenkeel-worker",
          shellLine(ssh), shellWord(fmt::format("mkdir -p {0} && tar -C {0} -xf -", programs))));
    }
    lines.push_back(there(fmt::format("umask 077; mkdir -p {}", directory)) +
                    fmt::format("  # then {} and {} go there, see resources/docs/protocol.md", kJobFile, kNodeFile));
    for (const NodeJob::Rank& rank : layouts[i].ranks) {
      lines.push_back(
          fmt::format("#   rank {} on {}: RANK={} WORLD_SIZE={} LOCAL_RANK={} LOCAL_WORLD_SIZE={} NODE_RANK={} "
                      "{}/evenkeel-worker --job {}/{}",
                      rank.rank, rank.device, rank.rank, worldSize, rank.localRank, layouts[i].ranks.size(), i, programs,
                      directory, kJobFile));
    }
    lines.push_back(there(fmt::format("{}/evenkeel-agent run --dir {}", programs, directory)));
    lines.push_back(there(fmt::format("{}/evenkeel-agent tail --dir {} --from 1", programs, directory)));
    lines.push_back(there(fmt::format("{}/evenkeel-agent stop --dir {}", programs, directory)));
  }
  return lines;
}

}  // namespace evenkeel
