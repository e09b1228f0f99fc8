// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/go_on.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <regex>

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

/// The node to go on without. A rank that hears nothing names the silent one, which cannot speak for itself: "rank 2 (n1/1): did not answer".
std::string nodeToBlame(const Plan& plan, const JobFailure& failure) {
  static const std::regex silent(R"(rank \d+ \(([^()]+)/\d+\))");
  std::smatch named;
  if (!std::regex_search(failure.reason, named, silent)) return failure.node;
  const bool isKnown = std::ranges::find(plan.cluster.nodes, named[1].str(), &Node::name) != plan.cluster.nodes.end();
  return isKnown ? named[1].str() : failure.node;
}

}  // namespace

Result<std::optional<LaunchRequest>> nextAttempt(Launcher& launcher, const LaunchRequest& failed, const JobStatus& status,
                                                 const std::stop_token& stop) {
  const Run::OnFailure wish = failed.run.onFailure;
  if (wish == Run::OnFailure::Stop || status.state != JobState::Failed) return std::optional<LaunchRequest>();
  const auto checkpoint = launcher.lastCheckpointOf(status.run);
  if (!checkpoint) return checkpoint.error();
  note("run {} failed{}\n", status.run, status.failed ? fmt::format("{}: {}", status.failed->node.empty() ? "" : " on " + status.failed->node, status.failed->reason) : "");
  if (checkpoint->empty()) {
    return evenkeel::failed("--on-failure", "the run wrote no checkpoint before it failed, so that the next attempt would come no further",
                            failed.resume.empty() ? "save more often (--checkpoint-every)" : "save more often, or go on by hand with --resume " + failed.resume);
  }
  LaunchRequest next = failed;
  next.continues = status.run;
  // The folder of all: where the newest is damaged, the one before it is taken.
  next.resume = std::filesystem::path(*checkpoint).parent_path().string();
  if (wish == Run::OnFailure::Replan && status.failed && !status.failed->node.empty()) {
    const std::string node = nodeToBlame(failed.plan, *status.failed);
    auto plan = planWithout(failed.plan, node, stop);
    if (!plan) return std::move(plan).error();
    next.plan = *std::move(plan);
    note("planned again without {}: {}\n{}", node, headline(next.plan), describePlan(next.plan));
  }
  note("going on from the newest checkpoint in {}\n", next.resume);
  return std::optional(std::move(next));
}

}  // namespace evenkeel::cli
