// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/node_order.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "core/cost/evaluate.h"

namespace evenkeel {
namespace {

/// More nodes with drawn links than this are not compared by whom they reach how fast.
constexpr std::size_t kMostNodesCompared = 256;

using LinkLook = std::tuple<double, double>;  // bandwidth and latency, the faster one first
LinkLook lookOf(const LinkSpec& link) { return {-link.bandwidth.value, link.latency.value}; }

/// What a node is, whatever its place and name. Rising from the fastest.
struct NodeLook {
  std::vector<int> types;  // places in the new order
  LinkLook intra, nic;
  bool isNicShared = false;
  double price = 0;
  auto operator<=>(const NodeLook&) const = default;
};

struct Order {
  std::vector<int> nodes, types;  // [new place]: old place

  explicit Order(const Cluster& cluster) {
    types.resize(cluster.deviceTypes.size());
    std::iota(types.begin(), types.end(), 0);
    const auto typeLook = [&](int t) {
      const DeviceType& type = cluster.deviceTypes[static_cast<std::size_t>(t)];
      double peak = 0;
      for (const auto& [precision, rate] : type.peak) peak = std::max(peak, rate.value);
      return std::tuple(-peak * type.speed, -type.memory.value, type.name);
    };
    std::ranges::sort(types, {}, typeLook);
    std::vector<int> placeOfType(types.size());
    for (std::size_t i = 0; i < types.size(); ++i) placeOfType[static_cast<std::size_t>(types[i])] = static_cast<int>(i);

    std::vector<NodeLook> looks;
    for (const Node& node : cluster.nodes) {
      NodeLook& look = looks.emplace_back();
      for (const Device& device : node.devices) look.types.push_back(placeOfType[static_cast<std::size_t>(device.type)]);
      look.intra = lookOf(node.intra);
      look.nic = lookOf(node.nic);
      look.isNicShared = !node.nicPerDevice;
      look.price = node.pricePerHour;
    }
    // More devices of a type come first.
    const auto isBefore = [&](const NodeLook& a, const NodeLook& b) {
      const std::size_t common = std::min(a.types.size(), b.types.size());
      for (std::size_t i = 0; i < common; ++i) {
        if (a.types[i] != b.types[i]) return a.types[i] < b.types[i];
      }
      if (a.types.size() != b.types.size()) return a.types.size() > b.types.size();
      return a < b;
    };
    nodes.resize(cluster.nodes.size());
    std::iota(nodes.begin(), nodes.end(), 0);
    const auto at = [&](int node) -> const NodeLook& { return looks[static_cast<std::size_t>(node)]; };
    std::ranges::stable_sort(nodes, [&](int a, int b) { return isBefore(at(a), at(b)); });
    if ((cluster.links.empty() && cluster.switches.empty()) || nodes.size() > kMostNodesCompared) return;
    // Alike but for whom they reach how fast.
    std::vector<int> rank(nodes.size(), 0);
    for (std::size_t i = 1; i < nodes.size(); ++i) {
      const auto before = static_cast<std::size_t>(nodes[i - 1]), now = static_cast<std::size_t>(nodes[i]);
      rank[now] = rank[before] + (isBefore(looks[before], looks[now]) ? 1 : 0);
    }
    std::vector<std::vector<std::pair<int, LinkLook>>> reach(nodes.size());
    for (std::size_t a = 0; a < nodes.size(); ++a) {
      for (std::size_t b = 0; b < nodes.size(); ++b) {
        if (a != b)
          reach[a].emplace_back(rank[b], lookOf(cluster.linkBetween({static_cast<int>(a), 0}, {static_cast<int>(b), 0})));
      }
      std::ranges::sort(reach[a]);
    }
    std::ranges::stable_sort(nodes, {}, [&](int node) {
      return std::pair(rank[static_cast<std::size_t>(node)], reach[static_cast<std::size_t>(node)]);
    });
  }

  [[nodiscard]] bool isAsGiven() const { return std::ranges::is_sorted(nodes) && std::ranges::is_sorted(types); }

  [[nodiscard]] Order inverse() const {
    Order back(*this);
    for (std::size_t i = 0; i < nodes.size(); ++i) back.nodes[static_cast<std::size_t>(nodes[i])] = static_cast<int>(i);
    for (std::size_t i = 0; i < types.size(); ++i) back.types[static_cast<std::size_t>(types[i])] = static_cast<int>(i);
    return back;
  }
};

/// Nodes and types at the places that the order gives them.
Cluster reordered(const Cluster& cluster, const Order& order) {
  const Order back = order.inverse();
  Cluster moved = cluster;
  for (std::size_t i = 0; i < order.types.size(); ++i)
    moved.deviceTypes[i] = cluster.deviceTypes[static_cast<std::size_t>(order.types[i])];
  for (std::size_t i = 0; i < order.nodes.size(); ++i) {
    moved.nodes[i] = cluster.nodes[static_cast<std::size_t>(order.nodes[i])];
    for (Device& device : moved.nodes[i].devices) device.type = back.types[static_cast<std::size_t>(device.type)];
  }
  for (Link& link : moved.links) {
    link.first = back.nodes[static_cast<std::size_t>(link.first)];
    link.second = back.nodes[static_cast<std::size_t>(link.second)];
  }
  return moved;
}

/// A plan of the moved cluster as one of the task's.
Plan asGiven(Plan plan, const Order& order, const Profile& profile) {
  plan.cluster = reordered(plan.cluster, order.inverse());
  for (Pipeline& pipeline : plan.pipelines) {
    for (Stage& stage : pipeline.stages) {
      for (DeviceId& device : stage.devices) device.node = order.nodes[static_cast<std::size_t>(device.node)];
    }
  }
  if (!plan.inputsSha256.empty()) plan.inputsSha256 = inputsHash(plan.cluster, plan.model, plan.training);
  if ((plan.cluster.links.empty() && plan.cluster.switches.empty()) || !plan.predicted || plan.pipelines.empty()) return plan;
  const Seconds proven = plan.predicted->lowerBound;
  plan = evaluate(plan, profile, false).plan;
  plan.predicted->lowerBound = proven;
  if (const auto incumbents = plan.search.find("incumbents"); incumbents != plan.search.end() && !incumbents->empty())
    incumbents->back()["iteration_ms"] = rounded(milliseconds(plan.predicted->iteration));
  return plan;
}

/// Passes everything on, plans in the task's order.
class OrderingObserver final : public SearchObserver {
 public:
  OrderingObserver(SearchObserver& to, const Order& order, const Profile& profile) : to_(to), order_(order), profile_(profile) {}
  void onPhase(std::string_view phase) override { to_.onPhase(phase); }
  void onIncumbent(const Incumbent& incumbent) override {
    to_.onIncumbent({asGiven(incumbent.plan, order_, profile_), incumbent.found, incumbent.finder});
  }
  void onBound(Seconds bound) override { to_.onBound(bound); }
  void onCounters(const Counters& counters) override { to_.onCounters(counters); }
  void onPoint(const SearchPoint& point) override { to_.onPoint(point); }

 private:
  SearchObserver& to_;
  const Order& order_;
  const Profile& profile_;
};

}  // namespace

Planner inAnyNodeOrder(Planner planner) {
  planner.plan = [search = std::move(planner.plan)](const SearchTask& task, SearchObserver& observer, std::stop_token stop) {
    const Order order(task.problem.cluster);
    if (order.isAsGiven()) return search(task, observer, stop);
    SearchTask moved = task;
    moved.problem.cluster = reordered(task.problem.cluster, order);
    OrderingObserver ordering(observer, order, *task.profile);
    Result<Plan> plan = search(moved, ordering, stop);
    return plan ? Result<Plan>(asGiven(*std::move(plan), order, *task.profile)) : plan;
  };
  return planner;
}

}  // namespace evenkeel
