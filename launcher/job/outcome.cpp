// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/job/outcome.h"

#include <algorithm>

#include "launcher/job/records.h"

namespace evenkeel {

void Outcome::takeRecord(int node, const Json& record) {
  Node& known = nodes_[static_cast<std::size_t>(node)];
  const std::string event = eventOf(record);
  if (event == "step") known.lastStep = std::max(known.lastStep, integerOf(record, "step"));
  if (event == "ended") {
    known.end = textOf(record, "state");
    if (known.end.empty()) known.end = "failed";
  }
  if (event == "failed") {
    failures_.push_back({.failure = {.rank = static_cast<int>(integerOf(record, "rank")),
                                     .node = run_.nodes[static_cast<std::size_t>(node)].name,
                                     .reason = textOf(record, "reason"),
                                     .lastStep = integerOf(record, "last_step")},
                         .time = numberOf(record, "time"),
                         .isOwn = textOf(record, "cause") != "peer"});
  }
}

void Outcome::takeGone(int node) { nodes_[static_cast<std::size_t>(node)].isGone = true; }
void Outcome::takeOver(const std::optional<std::string>& why) {
  for (Node& node : nodes_) node.isGone = node.isGone || node.end.empty();
  isOver_ = true;
  if (std::ranges::any_of(nodes_, [](const Node& node) { return node.end != "finished"; })) endedBySlurm_ = why;
}
void Outcome::takeUnreachable(int node, const std::string& why) { nodes_[static_cast<std::size_t>(node)].unreachable = why; }

bool Outcome::hasEnded(int node) const {
  const Node& known = nodes_[static_cast<std::size_t>(node)];
  return !known.end.empty() || known.isGone;
}

bool Outcome::allEnded() const {
  return std::ranges::all_of(nodes_, [](const Node& node) { return !node.end.empty() || node.isGone; });
}

bool Outcome::hasOwnFailure() const {
  return std::ranges::any_of(failures_, &Failure::isOwn) ||
         (!isOver_ && std::ranges::any_of(nodes_, &Node::isGone));
}

bool Outcome::hasFailure() const { return !failures_.empty() || std::ranges::any_of(nodes_, &Node::isGone); }

JobFailure Outcome::failureOf(std::size_t node, std::string reason) const {
  return {.rank = -1, .node = run_.nodes[node].name, .reason = std::move(reason), .lastStep = nodes_[node].lastStep};
}

std::optional<JobFailure> Outcome::firstCause() const {
  const Failure* first = nullptr;
  for (const Failure& failure : failures_) {
    if (first == nullptr || (failure.isOwn != first->isOwn ? failure.isOwn : failure.time < first->time)) first = &failure;
  }
  if (first != nullptr && first->isOwn) return first->failure;
  if (endedBySlurm_) {
    std::int64_t lastStep = 0;
    for (const Node& node : nodes_) lastStep = std::max(lastStep, node.lastStep);
    return JobFailure{.rank = -1, .node = {}, .reason = *endedBySlurm_, .lastStep = lastStep};
  }
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].isGone)
      return failureOf(i, "evenkeel-agent is gone without a last record: it was killed, or the machine was restarted");
  }
  if (first != nullptr) {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (!nodes_[i].unreachable.empty() && nodes_[i].end.empty())
        return failureOf(i, "does not answer: " + nodes_[i].unreachable);
    }
    return first->failure;
  }
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].end == "failed")
      return failureOf(i, "failed without giving a reason; see agent.log in " + run_.nodes[i].directory);
  }
  return std::nullopt;
}

Outcome::Verdict Outcome::verdict() const {
  if (run_.stopRequested && !hasOwnFailure() && allEnded()) return {.state = JobState::Stopped};
  if (auto cause = firstCause()) return {.state = JobState::Failed, .failed = std::move(cause)};
  if (!allEnded()) return {.state = JobState::Running};
  const bool wasStopped = std::ranges::any_of(nodes_, [](const Node& node) { return node.end == "stopped"; });
  return {.state = wasStopped ? JobState::Stopped : JobState::Finished};
}

}  // namespace evenkeel
