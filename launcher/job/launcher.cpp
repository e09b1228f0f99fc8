// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "launcher/job/dry_run.h"
#include "launcher/job/end_of_run.h"
#include "launcher/job/follower.h"
#include "launcher/job/job.h"
#include "launcher/job/records.h"
#include "launcher/job/slurm_start.h"
#include "launcher/job/starter.h"

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

/// The same of all nodes of a run that Slurm starts; also how its job stands, if that could be asked.
std::optional<Json> glanceAtSlurm(const RunRecord& record, const Connector& connect, const std::vector<std::int64_t>& from,
                                  std::vector<std::optional<Glance>>& glances) {
  auto login = connect(record.slurm->request.login, "the login node", kQuick, {});
  if (!login) return std::nullopt;
  std::optional<Json> queue;
  const auto output = followLines(**login, {.argv = watchCommand(record, from, true), .deadline = 5 * kQuick}, [&](std::string_view line) {
    if (auto told = parseQueueLine(line)) {
      queue = std::move(told);
    } else if (auto watched = parseWatchedRecord(line, glances.size())) {
      std::optional<Glance>& glance = glances[watched->node];
      if (!glance) glance.emplace();
      glance->records.push_back(std::move(watched->record));
    }
  });
  if (!output || !output->ending.wasGood()) return std::nullopt;  // what came is right, but it may not be all
  return queue;
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
  if (stop.stop_requested()) return Error{Error::Code::Cancelled, "preflight", "was stopped before it had looked at everything", ""};
  return preparation.rows();
}

Result<std::string> Launcher::startJob(const LaunchRequest& request, JobObserver& observer, std::stop_token stop) {
  observer.onState(JobState::Preparing);
  Preparation preparation(request, cacheDirectory_, connect_, observer, stop);
  preparation.examine();
  if (auto objection = preparation.objection()) return *std::move(objection);
  preparation.copy();
  if (auto objection = preparation.objection()) return *std::move(objection);
  if (request.slurm) return submit(request, preparation, observer, stop);
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

Result<std::string> Launcher::submit(const LaunchRequest& request, Preparation& preparation, JobObserver& observer,
                                     const std::stop_token& stop) {
  SlurmStarter starter(request, preparation, stop);
  const std::string id = starter.record().id;
  if (auto added = history_->add(starter.record()); !added) return added.error();
  if (const auto submitted = starter.submit(); !submitted) {
    const bool wasStopped = stop.stop_requested();
    const JobFailure failure{.node = {}, .reason = submitted.error().text()};
    const auto state = wasStopped ? JobState::Stopped : JobState::Failed;
    if (auto ended = endRun(*history_, starter.record(), state, wasStopped ? std::nullopt : std::optional(failure), &observer); !ended)
      return ended.error();
    if (!wasStopped) observer.onFailure(failure);
    observer.onState(state);
    return wasStopped ? Error{Error::Code::Cancelled, id, "was stopped before Slurm had it", ""} : submitted.error();
  }
  if (auto noted = history_->setSlurmJob(id, *starter.record().slurm); !noted) return noted.error();
  observer.onLog("Slurm", -1, "info", fmt::format("Slurm has taken the run as job {}", starter.record().slurm->id));
  return id;
}

Result<JobStatus> Launcher::followJob(const std::string& run, JobObserver& observer, std::stop_token stop) {
  auto record = history_->find(run);
  if (!record) return std::move(record).error();
  const bool isWaiting = record->slurm && !record->slurm->id.empty();
  if (record->state == JobState::Preparing && !isWaiting)
    return failed(run, "is still being started, or was left so", "stop it and start anew");
  return Follower(*history_, *std::move(record), connect_, observer, std::move(stop)).follow();
}

Result<StopReport> Launcher::stopJob(const std::string& run) {
  auto record = history_->find(run);
  if (!record) return std::move(record).error();
  if (!hasEnded(record->state)) {
    if (auto asked = history_->requestStop(run); !asked) return asked.error();
  }
  const StopReport report =
      record->slurm ? stopSlurm(*record, connect_) : stopNodes(record->nodes, connect_, record->timeouts);
  if (record->state == JobState::Preparing && report.complete()) {
    if (auto ended = endRun(*history_, *record, JobState::Stopped, {}, nullptr); !ended) return ended.error();
  }
  if (auto status = statusOf(run); !status) return status.error();
  return report;
}

Result<JobStatus> Launcher::statusOf(const std::string& run) {
  auto record = history_->find(run);
  if (!record) return std::move(record).error();
  const bool isWaiting = record->state == JobState::Preparing && record->slurm && !record->slurm->id.empty();
  if (record->state != JobState::Running && !isWaiting) return history_->statusOf(run);
  std::vector<std::int64_t> from;
  for (std::size_t i = 0; i < record->nodes.size(); ++i) {
    auto last = history_->lastSeq(run, static_cast<int>(i));
    if (!last) return std::move(last).error();
    from.push_back(*last + 1);
  }
  std::vector<std::optional<Glance>> glances(record->nodes.size());
  std::optional<Json> queue;
  if (record->slurm) queue = glanceAtSlurm(*record, connect_, from, glances);
  else inParallel(glances.size(), [&](std::size_t i) { glances[i] = glanceAt(record->nodes[i], connect_, from[i]); });
  Outcome outcome(*record);
  if (queue && queue->value("over", false)) outcome.takeOver(endedBySlurm(record->slurm->id, *queue));
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
  if (isWaiting && !outcome.allEnded() && std::ranges::any_of(glances, [](const auto& glance) { return glance && !glance->records.empty(); })) {
    if (auto set = history_->setState(run, JobState::Running); !set) return set.error();
  }
  auto status = history_->statusOf(run);
  if (status && queue && !hasEnded(status->state)) status->queue = describeQueue(record->slurm->id, *queue);
  return status;
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

Result<std::string> Launcher::runNamed(const std::string& beginning) { return history_->idNamed(beginning); }

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
  if (record->slurm) request.slurm = record->slurm->request;
  request.local = !record->slurm && std::ranges::all_of(record->nodes, [](const JobNode& node) { return node.ssh.host.empty(); });
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
  return commandsOf(request, cacheDirectory_);
}

}  // namespace evenkeel
