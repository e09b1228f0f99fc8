// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/run_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/cost/bound.h"
#include "core/search/constraints.h"
#include "core/search/limits.h"

namespace evenkeel {
namespace {

constexpr double kSecondsAnHour = 3600;
/// Rounds of leaving more nodes idle.
constexpr int kMostRounds = 12;

std::set<int> nodesOf(std::span<const DeviceId> devices) {
  std::set<int> nodes;
  for (const DeviceId device : devices) nodes.insert(device.node);
  return nodes;
}

double priceOf(const Cluster& cluster, const std::set<int>& nodes) {
  double sum = 0;
  for (const int node : nodes) sum += cluster.nodes[static_cast<std::size_t>(node)].pricePerHour;
  return sum;
}

/// Nodes that differ in name and address only, by what makes them alike: all devices, links and the price.
std::vector<std::vector<int>> alikeNodes(const Cluster& cluster) {
  std::vector<std::vector<int>> groups;
  const bool isDrawn = !cluster.links.empty() || !cluster.switches.empty();
  for (int n = 0; n < static_cast<int>(cluster.nodes.size()); ++n) {
    const Node& node = cluster.nodes[static_cast<std::size_t>(n)];
    const auto found = std::ranges::find_if(groups, [&](const std::vector<int>& group) {
      const Node& other = cluster.nodes[static_cast<std::size_t>(group.front())];
      return !isDrawn && other.intra == node.intra && other.nic == node.nic && other.nicPerDevice == node.nicPerDevice &&
             other.pricePerHour == node.pricePerHour &&
             std::ranges::equal(other.devices, node.devices, {}, &Device::type, &Device::type);
    });
    if (found == groups.end()) groups.push_back({n});
    else found->push_back(n);
  }
  return groups;
}

/// Seeks the cheapest plan by leaving ever more nodes idle.
class Cheapest {
 public:
  Cheapest(const Goal& goal, const Planner& planner, const SearchTask& task, SearchObserver& observer, std::stop_token stop)
      : goal_(goal),
        planner_(planner),
        task_(task),
        observer_(observer),
        stop_(std::move(stop)),
        model_(task.problem.cluster, task.problem.model, task.problem.training, *task.profile),
        groups_(alikeNodes(task.problem.cluster)) {}

  Result<Plan> run() {
    std::vector<int> counts;  // of each group's nodes that may be used, the first ones
    for (const std::vector<int>& group : groups_) counts.push_back(static_cast<int>(group.size()));
    auto fastest = planner_.plan(task_, observer_, stop_);
    if (!fastest) return fastest;
    if (goal_.objective == Objective::Deadline && !isInTime(fastest->predicted->iteration)) {
      return infeasible(
          "--deadline-hours",
          fmt::format("the fastest plan found takes {:.4g} h for {} steps", hours(fastest->predicted->iteration), goal_.steps),
          fmt::format("allow {:.4g} h, or draw more devices", hours(fastest->predicted->iteration)));
    }
    take(*std::move(fastest));
    for (int round = 0; round < kMostRounds && !stop_.stop_requested(); ++round) {
      const double before = bestPrice_;
      std::vector<int> next = counts;
      for (std::size_t g = 0; g < groups_.size(); ++g) {
        for (const int left : {0, counts[g] / 2, counts[g] - 1}) {
          if (left < 0 || left >= counts[g]) continue;
          std::vector<int> fewer = counts;
          fewer[g] = left;
          if (tryNodes(fewer)) next = fewer;
        }
      }
      if (bestPrice_ >= before) break;
      counts = next;
    }
    return *std::move(best_);
  }

 private:
  [[nodiscard]] double hours(Seconds iteration) const {
    return static_cast<double>(goal_.steps) * iteration.value / kSecondsAnHour;
  }
  [[nodiscard]] bool isInTime(Seconds iteration) const {
    return goal_.objective != Objective::Deadline || static_cast<double>(goal_.steps) * iteration.value <= goal_.deadline.value;
  }
  /// Of an iteration, in price x seconds an hour.
  [[nodiscard]] double priceOfPlan(const Plan& plan) const {
    return plan.predicted->iteration.value * priceOf(plan.cluster, nodesOf(plan.usedDevices()));
  }

  bool take(Plan plan) {
    const double price = priceOfPlan(plan);
    if (best_ && price >= bestPrice_) return false;
    bestPrice_ = price;
    best_ = std::move(plan);
    return true;
  }

  /// True: with only so many nodes of each group there is a cheaper plan.
  bool tryNodes(const std::vector<int>& counts) {
    if (!tried_.insert(counts).second || stop_.stop_requested()) return false;
    SearchTask task = task_;
    std::string& names = task.options["exclude"];
    std::set<int> used;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      for (int i = 0; i < static_cast<int>(groups_[g].size()); ++i) {
        const int node = groups_[g][static_cast<std::size_t>(i)];
        if (i < counts[g]) used.insert(node);
        else names += (names.empty() ? "" : ",") + task.problem.cluster.nodes[static_cast<std::size_t>(node)].name;
      }
    }
    const auto constraints = constraintsFrom(task.options, task.problem.cluster);
    if (!constraints) return false;
    std::vector<DeviceId> devices = limitsOf(task.problem, *constraints).devices;
    if (devices.empty()) return false;
    const Seconds least = problemLowerBound(model_, devices);
    if (!isInTime(least)) return false;
    // All of them must be paid, or the same was tried without them.
    if (least.value * priceOf(task.problem.cluster, used) >= bestPrice_) return false;
    SearchObserver nobody;
    auto plan = planner_.plan(task, nobody, stop_);
    if (!plan || !isInTime(plan->predicted->iteration)) return false;
    return take(*std::move(plan));
  }

  const Goal& goal_;
  const Planner& planner_;
  const SearchTask& task_;
  SearchObserver& observer_;
  std::stop_token stop_;
  CostModel model_;
  std::vector<std::vector<int>> groups_;
  std::set<std::vector<int>> tried_;
  std::optional<Plan> best_;
  double bestPrice_ = 0;
};

}  // namespace

RunCost runCost(const Plan& plan, std::int64_t steps) {
  RunCost cost{
      .steps = steps,
      .tokens = static_cast<double>(steps) * static_cast<double>(plan.training.globalBatch * plan.training.sequenceLength),
      .duration = static_cast<double>(steps) * plan.predicted->iteration};
  const std::vector<DeviceId> used = plan.usedDevices();
  cost.deviceHours = static_cast<double>(used.size()) * cost.duration.value / kSecondsAnHour;
  const std::set<int> nodes = nodesOf(used);
  for (const int node : nodes) {
    const Node& one = plan.cluster.nodes[static_cast<std::size_t>(node)];
    if (one.pricePerHour <= 0 && cost.unpriced.empty()) cost.unpriced = one.name;
  }
  if (cost.unpriced.empty()) cost.price = priceOf(plan.cluster, nodes) * cost.duration.value / kSecondsAnHour;
  return cost;
}

Json toJson(const RunCost& cost) {
  Json json = {{"steps", cost.steps},
               {"tokens", rounded(cost.tokens)},
               {"hours", rounded(cost.duration.value / kSecondsAnHour)},
               {"device_hours", rounded(cost.deviceHours)}};
  if (cost.price) json["price"] = rounded(*cost.price);
  return json;
}

std::int64_t stepsFor(std::int64_t tokens, const Training& training) {
  const std::int64_t perStep = training.globalBatch * training.sequenceLength;
  return (tokens + perStep - 1) / perStep;
}

std::span<const std::pair<std::string_view, Objective>> objectiveWords() {
  static constexpr std::pair<std::string_view, Objective> kWords[] = {
      {"time", Objective::Time}, {"cost", Objective::Cost}, {"deadline", Objective::Deadline}};
  return kWords;
}

Result<Plan> planFor(const Goal& goal, const Planner& planner, const SearchTask& task, SearchObserver& observer,
                     std::stop_token stop) {
  if (goal.objective == Objective::Time) return planner.plan(task, observer, stop);
  if (std::ranges::find(planner.options, "exclude", &PlannerOptionInfo::name) == planner.options.end())
    return invalidInput("--objective", fmt::format("planner {} cannot leave nodes out", planner.name), "use optimal or eth");
  for (const Node& node : task.problem.cluster.nodes) {
    if (node.pricePerHour <= 0)
      return invalidInput("--objective", fmt::format("node {} has no price", node.name), "give each node a price_per_hour");
  }
  if (goal.objective == Objective::Deadline && (goal.steps < 1 || goal.deadline.value <= 0))
    return invalidInput("--objective", "a deadline needs the length of the run and its hours",
                        "add --steps or --tokens, and --deadline-hours");
  return Cheapest(goal, planner, task, observer, stop).run();
}

}  // namespace evenkeel
