// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/job/follower.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "launcher/agent/journal.h"
#include "launcher/job/end_of_run.h"
#include "launcher/job/records.h"
#include "launcher/job/slurm_start.h"
#include "launcher/job/starter.h"

namespace evenkeel {
namespace {

constexpr std::chrono::milliseconds kSilence{20'000};  // four of the agent's empty lines
constexpr std::chrono::milliseconds kFirstPause{200};  // before the second try to connect; doubled each time
constexpr std::chrono::milliseconds kLongestPause{5'000};
constexpr std::chrono::milliseconds kGraceForCulprit{2'000};
constexpr std::size_t kMostQueued = 4096;
constexpr int kAgentGone = 3;  // exit status of `tail`
constexpr const char* kLoginNode = "the login node";

double larger(double a, double b) { return std::max(a, b); }

}  // namespace

std::optional<StepRecord> StepMerger::take(const Json& record) {
  const StepRecord one = stepOf(record);
  Partial& partial = partial_[one.step];
  StepRecord& step = partial.step;
  if (partial.ranks == 0) step = one;
  step.iterationMs = larger(step.iterationMs, one.iterationMs);
  step.computeMs = larger(step.computeMs, one.computeMs);
  step.p2pMs = larger(step.p2pMs, one.p2pMs);
  step.bubbleMs = larger(step.bubbleMs, one.bubbleMs);
  step.syncMs = larger(step.syncMs, one.syncMs);
  step.optimizerMs = larger(step.optimizerMs, one.optimizerMs);
  step.peakBytes = std::max(step.peakBytes, one.peakBytes);
  if (++partial.ranks < worldSize_) return std::nullopt;
  const StepRecord whole = step;
  partial_.erase(one.step);
  return whole;
}

Follower::Follower(RunHistory& history, RunRecord run, const Connector& connect, JobObserver& observer, std::stop_token stop)
    : history_(history),
      run_(std::move(run)),
      connect_(connect),
      observer_(observer),
      stop_(std::move(stop)),
      outcome_(run_),
      steps_(run_.worldSize),
      nodes_(run_.nodes.size()) {}

Result<JobStatus> Follower::follow() {
  observer_.onState(run_.state);
  // What another follower stores from now on is told by our own tails.
  std::vector<std::int64_t> from;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    auto last = history_.lastSeq(run_.id, static_cast<int>(i));
    if (!last) return std::move(last).error();
    from.push_back(*last + 1);
  }
  if (auto replayed = replay(from); !replayed) return replayed.error();
  if (hasEnded(run_.state)) {
    if (run_.failed) observer_.onFailure(*run_.failed);
    return history_.statusOf(run_.id);
  }
  Result<void> stored;
  {
    std::vector<std::jthread> tails;
    if (run_.slurm) tails.emplace_back([this, from](const std::stop_token& stop) { watchSlurm(from, stop); });
    for (std::size_t i = 0; i < nodes_.size() && !run_.slurm; ++i) {
      const int node = static_cast<int>(i);
      if (!outcome_.hasEnded(node)) {
        tails.emplace_back([this, node, first = from[i]](const std::stop_token& stop) { tailNode(node, first, stop); });
      }
    }
    while (!isOver() && !stop_.stop_requested() && stored) {
      const std::vector<Message> messages = take(nextDeadline());
      stored = store(messages);
      for (const Message& message : messages) handle(message);
      stopOthersIfDue();
    }
    for (std::jthread& tail : tails) tail.request_stop();
  }
  stoppers_.clear();  // waits; each has its own limit
  if (!stored) return stored.error();
  if (!isOver()) return history_.statusOf(run_.id);
  return settle();
}

// ---- the nodes' threads

void Follower::tailNode(int node, std::int64_t from, const std::stop_token& stop) {
  std::int64_t next = from;
  bool wasCut = false;
  auto pause = kFirstPause;
  while (!stop.stop_requested()) {
    const std::int64_t before = next;
    if (tailOnce(node, next, wasCut, stop)) return;
    pause = next > before ? kFirstPause : std::min(2 * pause, kLongestPause);
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, stop, pause, [] { return false; });
  }
}

bool Follower::tailOnce(int node, std::int64_t& next, bool& wasCut, const std::stop_token& stop) {
  const JobNode& place = run_.nodes[static_cast<std::size_t>(node)];
  const auto cut = [&](const Error& error) {
    if (!wasCut) post({.node = node, .kind = Message::Kind::Cut, .error = error}, stop);
    wasCut = true;
    return false;
  };
  const auto refuse = [&](const Error& error) {
    post({.node = node, .kind = Message::Kind::Refused, .error = error}, stop);
    return true;
  };
  auto host = connect_(place.ssh, place.name, run_.timeouts.connect, stop);
  if (stop.stop_requested()) return true;
  if (!host) {
    const bool mayPass = host.error().code == Error::Code::Unreachable || host.error().code == Error::Code::Cancelled;
    return mayPass ? cut(host.error()) : refuse(host.error());
  }
  bool hasEnded = false;
  const auto onLine = [&](std::string_view line) {
    if (std::exchange(wasCut, false)) post({.node = node, .kind = Message::Kind::Back}, stop);
    auto record = parseRecord(line);
    if (!record || integerOf(*record, "seq") != next) return;  // an empty line, or one that we have
    ++next;
    hasEnded = hasEnded || isEnd(line);
    post({.node = node, .kind = Message::Kind::Record, .record = *std::move(record)}, stop);
  };
  auto output = followLines(
      **host, {.argv = {place.agent, "tail", "--dir", place.directory, "--from", std::to_string(next)}, .silence = kSilence},
      onLine, stop);
  if (hasEnded || stop.stop_requested()) return true;
  if (!output) return cut(output.error());
  if (output->ending.exitStatus == kAgentGone && output->ending.signal.empty()) {
    post({.node = node, .kind = Message::Kind::Gone}, stop);
    return true;
  }
  if (output->ending.wasGood() || !output->ending.signal.empty())
    return cut(unreachable(place.name, "the reader of the journal ended"));
  return refuse(failed(place.name, fmt::format("the journal cannot be read ({}): {}", output->ending.text(), output->err)));
}

void Follower::watchSlurm(std::vector<std::int64_t> next, const std::stop_token& stop) {
  bool wasCut = false;
  auto pause = kFirstPause;
  while (!stop.stop_requested()) {
    const auto before = next;
    if (watchOnce(next, wasCut, stop)) return post({.kind = Message::Kind::WatchEnded}, stop);
    pause = next != before ? kFirstPause : std::min(2 * pause, kLongestPause);
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, stop, pause, [] { return false; });
  }
}

/// One connection; true if there is nothing more to come.
bool Follower::watchOnce(std::vector<std::int64_t>& next, bool& wasCut, const std::stop_token& stop) {
  const auto cut = [&](const Error& error) {
    if (!wasCut) post({.kind = Message::Kind::Cut, .error = error}, stop);
    wasCut = true;
    return false;
  };
  const auto refuse = [&](const Error& error) {
    post({.kind = Message::Kind::Refused, .error = error}, stop);
    return true;
  };
  auto login = connect_(run_.slurm->request.login, kLoginNode, run_.timeouts.connect, stop);
  if (stop.stop_requested()) return true;
  if (!login) {
    const bool mayPass = login.error().code == Error::Code::Unreachable || login.error().code == Error::Code::Cancelled;
    return mayPass ? cut(login.error()) : refuse(login.error());
  }
  const auto onLine = [&](std::string_view line) {
    if (std::exchange(wasCut, false)) post({.kind = Message::Kind::Back}, stop);
    if (auto queue = parseQueueLine(line)) return post({.kind = Message::Kind::Queue, .record = *std::move(queue)}, stop);
    auto watched = parseWatchedRecord(line, next.size());
    if (!watched || integerOf(watched->record, "seq") != next[watched->node]) return;
    ++next[watched->node];
    post({.node = static_cast<int>(watched->node), .kind = Message::Kind::Record, .record = std::move(watched->record)}, stop);
  };
  const auto output = followLines(**login, {.argv = watchCommand(run_, next, false), .silence = kSilence}, onLine, stop);
  if (stop.stop_requested()) return true;
  if (!output) return cut(output.error());
  if (output->ending.wasGood()) return true;
  if (!output->ending.signal.empty()) return cut(unreachable(kLoginNode, "the reader of the journals ended"));
  return refuse(failed(kLoginNode, fmt::format("the journals cannot be read ({}): {}", output->ending.text(), output->err)));
}

void Follower::post(Message message, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, stop, [&] { return queue_.size() < kMostQueued; });
  queue_.push_back(std::move(message));
  changed_.notify_all();
}

// ---- the caller's thread

Result<void> Follower::replay(const std::vector<std::int64_t>& until) {
  return history_.replay(run_.id, [&](int node, const Json& record) {
    if (integerOf(record, "seq") >= until[static_cast<std::size_t>(node)]) return;
    outcome_.takeRecord(node, record);
    tell(node, record);
  });
}

std::vector<Follower::Message> Follower::take(std::optional<Clock::time_point> until) {
  std::unique_lock lock(mutex_);
  const auto hasSome = [&] { return !queue_.empty(); };
  if (until) {
    changed_.wait_until(lock, stop_, *until, hasSome);
  } else {
    changed_.wait(lock, stop_, hasSome);
  }
  std::vector<Message> messages(std::make_move_iterator(queue_.begin()), std::make_move_iterator(queue_.end()));
  queue_.clear();
  changed_.notify_all();
  return messages;
}

/// Before anybody is told: what was shown once must be there when it is asked for again.
Result<void> Follower::store(const std::vector<Message>& messages) {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    std::vector<Json> records;
    for (const Message& message : messages) {
      if (message.kind == Message::Kind::Record && message.node == static_cast<int>(i)) records.push_back(message.record);
    }
    if (records.empty()) continue;
    if (auto appended = history_.append(run_.id, static_cast<int>(i), records); !appended) return appended;
  }
  return {};
}

void Follower::handle(const Message& message) {
  const std::string name = run_.slurm ? kLoginNode : run_.nodes[static_cast<std::size_t>(message.node)].name;
  // through the login node all nodes are reached, or none
  const std::span<Node> touched = run_.slurm ? std::span(nodes_) : std::span(nodes_).subspan(static_cast<std::size_t>(message.node), 1);
  switch (message.kind) {
    case Message::Kind::Record:
      noteRunning();
      outcome_.takeRecord(message.node, message.record);
      tell(message.node, message.record);
      break;
    case Message::Kind::Cut:
      for (Node& node : touched) node = {.cutSince = Clock::now(), .reason = message.error.what, .refused = {}};
      observer_.onConnection(name, message.error.text());
      break;
    case Message::Kind::Back:
      for (Node& node : touched) node.cutSince.reset();
      observer_.onConnection(name, "");
      break;
    case Message::Kind::Gone: outcome_.takeGone(message.node); break;
    case Message::Kind::Refused:
      for (Node& node : touched) node = {.cutSince = node.cutSince, .reason = message.error.what, .refused = message.error};
      break;
    case Message::Kind::Queue: handleQueue(message.record); break;
    case Message::Kind::WatchEnded: isWatchOver_ = true; break;
  }
}

void Follower::handleQueue(const Json& queue) {
  const std::string& job = run_.slurm->id;
  if (queue.value("over", false)) outcome_.takeOver(endedBySlurm(job, queue));
  else observer_.onLog("Slurm", -1, "info", describeQueue(job, queue));
}

/// A run that Slurm starts is being prepared until one of its nodes has said something.
void Follower::noteRunning() {
  if (run_.state != JobState::Preparing) return;
  run_.state = JobState::Running;
  [[maybe_unused]] const auto noted = history_.setState(run_.id, run_.state);  // its end is what has to be noted
  observer_.onState(run_.state);
}

void Follower::tell(int node, const Json& record) {
  const std::string& name = run_.nodes[static_cast<std::size_t>(node)].name;
  const int rank = static_cast<int>(integerOf(record, "rank"));
  const std::string event = eventOf(record);
  if (event == "step") {
    if (const auto step = steps_.take(record)) observer_.onStep(*step);
  } else if (event == "log") {
    observer_.onLog(name, rank, textOf(record, "level") == "warning" ? "warning" : "info", textOf(record, "text"));
  } else if (event == "warning") {
    observer_.onLog(name, rank, "warning", textOf(record, "text"));
  } else if (event == "evaluation") {
    observer_.onLog(name, rank, "info",
                    fmt::format("validation loss {:.4f} after step {}", numberOf(record, "loss"), integerOf(record, "step")));
    observer_.onEvaluation(integerOf(record, "step"), numberOf(record, "loss"));
  } else if (event == "checkpoint") {
    observer_.onCheckpoint(integerOf(record, "step"), textOf(record, "path"));
  } else if (event == "failed") {
    observer_.onLog(name, rank, "warning", "failed: " + textOf(record, "reason"));
  }
}

bool Follower::isLongCut(int node) const {
  const Node& known = nodes_[static_cast<std::size_t>(node)];
  return known.cutSince && Clock::now() >= *known.cutSince + run_.timeouts.reconnect;
}

bool Follower::isSettled(int node) const {
  return outcome_.hasEnded(node) || nodes_[static_cast<std::size_t>(node)].refused || isLongCut(node);
}

/// A node that is cut off is given up only when nothing is left to be learnt from the others.
bool Follower::isOver() const {
  if (run_.slurm) return isWatchOver_ || isLongCut(0);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!isSettled(static_cast<int>(i))) return false;
  }
  return true;
}

std::optional<Follower::Clock::time_point> Follower::nextDeadline() const {
  std::optional<Clock::time_point> next;
  const auto consider = [&](Clock::time_point time) {
    if (time > Clock::now() && (!next || time < *next)) next = time;
  };
  for (const Node& node : nodes_) {
    if (node.cutSince) consider(*node.cutSince + run_.timeouts.reconnect);
  }
  if (victimSince_) consider(*victimSince_ + kGraceForCulprit);
  return next;
}

/// The failure of one node ends the job: the others would only wait for it.
void Follower::stopOthersIfDue() {
  if (!stoppers_.empty() || !outcome_.hasFailure()) return;
  if (!outcome_.hasOwnFailure()) {
    if (!victimSince_) victimSince_ = Clock::now();
    if (Clock::now() < *victimSince_ + kGraceForCulprit) return;
  }
  if (run_.slurm) {
    // of the job as a whole; Slurm's word on it is waited for by the watch
    stoppers_.emplace_back([this] { [[maybe_unused]] const auto report = stopSlurm(run_, connect_); });
    return;
  }
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (outcome_.hasEnded(static_cast<int>(i))) continue;
    stoppers_.emplace_back([this, i] {
      // what it reports, the node's journal tells as well; what does not answer is waited for by the tail
      [[maybe_unused]] const auto report = stopNode(run_.nodes[i], connect_, run_.timeouts);
    });
  }
}

Result<JobStatus> Follower::settle() {
  auto current = history_.find(run_.id);
  if (!current) return std::move(current).error();
  run_.stopRequested = current->stopRequested;
  std::string unanswered;
  std::optional<Error> refused;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (outcome_.hasEnded(static_cast<int>(i))) continue;
    outcome_.takeUnreachable(static_cast<int>(i), nodes_[i].reason);
    if (nodes_[i].refused && !refused) refused = nodes_[i].refused;
    unanswered += (unanswered.empty() ? "" : ", ") + run_.nodes[i].name + ": " + nodes_[i].reason;
  }
  const Outcome::Verdict verdict = outcome_.verdict();
  if (verdict.state == JobState::Running) {
    if (refused) return *refused;
    return unreachable(run_.id, "its nodes cannot be asked (" + unanswered + ")", "the job may go on there; attach again later");
  }
  if (auto ended = endRun(history_, run_, verdict.state, verdict.failed, &observer_); !ended) return ended.error();
  if (verdict.failed) observer_.onFailure(*verdict.failed);
  observer_.onState(verdict.state);
  return history_.statusOf(run_.id);
}

}  // namespace evenkeel
