// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/go_on.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/cli/command.h"
#include "app/cli/describe.h"
#include "app/cli/search_progress.h"
#include "core/profile/analytic_profile.h"
#include "core/search/search.h"

namespace evenkeel::cli {
namespace {

Result<Cluster> withoutNode(const Cluster& cluster, const std::string& name) {
  Json json = toJson(cluster);
  const auto isNamed = [&](const Json& node) { return node["name"] == name; };
  std::erase_if(json["nodes"].get_ref<Json::array_t&>(), isNamed);
  if (json["nodes"].empty()) return failed("--on-failure replan", fmt::format("no node is left without {}", name), "use --on-failure resume to try it again");
  if (json.contains("switches")) {
    for (Json& one : json["switches"]) std::erase_if(one["members"].get_ref<Json::array_t&>(), [&](const Json& member) { return member == name; });
  }
  if (json.contains("links")) std::erase_if(json["links"].get_ref<Json::array_t&>(), [&](const Json& link) { return link["between"][0] == name || link["between"][1] == name; });
  JsonContext context{"the cluster without " + name, {}};
  JsonReader reader(json, context);
  Cluster rest = readCluster(reader);
  if (context.error) return *std::move(context.error);
  return rest;
}

Result<Plan> planWithout(const Plan& plan, const std::string& node, const std::stop_token& stop) {
  auto cluster = withoutNode(plan.cluster, node);
  if (!cluster) return std::move(cluster).error();
  const std::string name = plan.search.is_object() ? plan.search.value("planner", "optimal") : "optimal";
  const auto planner = plannerNamed(name);
  if (!planner) return planner.error();
  const AnalyticProfile profile(plan.model, plan.training);
  SearchProgress progress(name);
  auto found = (*planner)->plan({{*std::move(cluster), plan.model, plan.training}, &profile, {}, {}}, progress, stop);
  progress.finish();
  return found;
}

}  // namespace

std::optional<OnFailure> onFailureNamed(const std::string& word) {
  if (word == "stop") return OnFailure::Stop;
  if (word == "resume") return OnFailure::Resume;
  if (word == "replan") return OnFailure::Replan;
  return std::nullopt;
}

Result<std::optional<LaunchRequest>> nextAttempt(Launcher& launcher, const LaunchRequest& failed, const JobStatus& status, OnFailure wish,
                                                 const std::stop_token& stop) {
  if (wish == OnFailure::Stop || status.state != JobState::Failed) return std::optional<LaunchRequest>();
  const auto checkpoint = launcher.lastCheckpointOf(status.run);
  if (!checkpoint) return checkpoint.error();
  if (checkpoint->empty() || *checkpoint == failed.resume) return std::optional<LaunchRequest>();
  note("run {} failed{}\n", status.run, status.failed ? fmt::format(" on {}: {}", status.failed->node, status.failed->reason) : "");
  LaunchRequest next = failed;
  next.resume = *checkpoint;
  if (wish == OnFailure::Replan && status.failed && !status.failed->node.empty()) {
    auto plan = planWithout(failed.plan, status.failed->node, stop);
    if (!plan) return std::move(plan).error();
    next.plan = *std::move(plan);
    note("planned again without {}: {}\n{}", status.failed->node, headline(next.plan), describePlan(next.plan));
  }
  note("going on from {}\n", *checkpoint);
  return std::optional(std::move(next));
}

}  // namespace evenkeel::cli
