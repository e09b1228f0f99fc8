// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/best_type/best_type.h"

#include <set>

#include "core/search/eth/eth.h"
#include "core/search/limits.h"
#include "core/search/remedy.h"
#include "core/search/session.h"

namespace evenkeel {
namespace {

/// The devices of one type and the nodes that hold any, with the links and switches between them.
struct Alone {
  Cluster cluster;
  std::vector<std::vector<DeviceId>> whole;  // [node][index] here -> the device in the whole cluster

  Alone(const Cluster& all, int type) : cluster(all) {
    std::vector<int> place(all.nodes.size(), -1);
    std::set<std::string, std::less<>> left;  // names of nodes that are left out
    cluster.nodes.clear();
    for (std::size_t n = 0; n < all.nodes.size(); ++n) {
      std::vector<DeviceId> devices;
      for (std::size_t d = 0; d < all.nodes[n].devices.size(); ++d) {
        if (all.nodes[n].devices[d].type == type) devices.push_back({static_cast<int>(n), static_cast<int>(d)});
      }
      if (devices.empty()) {
        left.insert(all.nodes[n].name);
        continue;
      }
      place[n] = static_cast<int>(whole.size());
      cluster.nodes.push_back(all.nodes[n]);
      std::erase_if(cluster.nodes.back().devices, [&](const Device& device) { return device.type != type; });
      whole.push_back(std::move(devices));
    }
    for (Link& link : cluster.links) {
      link.first = place[static_cast<std::size_t>(link.first)];
      link.second = place[static_cast<std::size_t>(link.second)];
    }
    std::erase_if(cluster.links, [](const Link& link) { return link.first < 0 || link.second < 0; });
    for (Switch& one : cluster.switches) std::erase_if(one.members, [&](const std::string& name) { return left.contains(name); });
  }

  [[nodiscard]] std::vector<Pipeline> inWhole(std::vector<Pipeline> pipelines) const {
    for (Pipeline& pipeline : pipelines) {
      for (Stage& stage : pipeline.stages) {
        for (DeviceId& device : stage.devices)
          device = whole[static_cast<std::size_t>(device.node)][static_cast<std::size_t>(device.index)];
      }
    }
    return pipelines;
  }
};

/// A type whose devices could train alone.
struct Candidate {
  std::string name;
  Alone alone;
  Problem problem;
};

std::vector<Candidate> candidatesOf(const Problem& whole) {
  std::vector<Candidate> types;
  for (std::size_t type = 0; type < whole.cluster.deviceTypes.size(); ++type) {
    Alone alone(whole.cluster, static_cast<int>(type));
    if (alone.whole.empty()) continue;
    Problem problem{alone.cluster, whole.model, whole.training};
    if (limitsOf(problem).devices.empty()) continue;  // the type lacks the precision
    types.push_back({whole.cluster.deviceTypes[type].name, std::move(alone), std::move(problem)});
  }
  return types;
}

Result<Plan> planBestType(const SearchTask& task, SearchObserver& observer, std::stop_token stop) {
  if (auto checked = checkTask("best-type", {}, task); !checked) return checked.error();
  SearchSession session("best-type", task, observer, stop);
  const Planner eth = ethPlanner();
  const std::vector<Candidate> types = candidatesOf(task.problem);
  std::optional<Error> reason;  // why the last type has no plan, if none has
  for (std::size_t i = 0; i < types.size() && !session.stopped(); ++i) {
    session.phase(types[i].name + " alone");
    SearchTask part{types[i].problem, task.profile, session.budgetLeft(), {}};
    if (part.budget.timeLimit) *part.budget.timeLimit = *part.budget.timeLimit / static_cast<double>(types.size() - i);
    SearchObserver nobody;
    const auto plan = eth.plan(part, nobody, stop);
    if (plan) {
      const auto pipelines = types[i].alone.inWhole(plan->pipelines);
      if (session.stopped()) session.considerLate(pipelines, types[i].name);
      else
        session.consider(
            1, [&](std::size_t) { return pipelines; }, types[i].name);
    } else {
      reason = plan.error();
      reason->where = types[i].name + " alone" + (reason->where == eth.name ? "" : ", " + reason->where);
    }
  }
  if (reason && session.incumbent().empty() && reason->code == Error::Code::Infeasible) return *reason;
  return withRemedy(session.finish("types exhausted"), task, stop);
}

}  // namespace

Planner bestTypePlanner() {
  return {.name = "best-type",
          .summary = "each device type alone, the others idle: is the mix worth it?",
          .options = {},
          .deviations = {"no planner of its own: each type is planned by eth, with the same limits"},
          .plan = planBestType};
}

}  // namespace evenkeel
