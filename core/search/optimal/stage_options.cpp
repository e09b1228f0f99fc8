// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/optimal/stage_options.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "core/cost/memory.h"

namespace evenkeel::optimal {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
/// Incoming and outgoing activation and gradient, as memory.cpp charges them.
constexpr std::int64_t kBoundaryBuffers = 4;

std::size_t index(UnitKind kind) { return static_cast<std::size_t>(kind); }
std::int64_t ceilDivide(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::int64_t roundedUp(double value) { return static_cast<std::int64_t>(std::ceil(value)); }

}  // namespace

std::vector<Resource> resourcesOf(const CostModel& model, std::span<const DeviceId> devices) {
  std::map<std::pair<int, int>, int> counts;  // (kind, node) -> devices
  for (const DeviceId device : devices) ++counts[{model.kindOf(device), device.node}];
  std::vector<Resource> resources;
  for (int kind = 0; kind < model.kindCount(); ++kind) {
    int all = 0, largest = 0;
    for (const auto& [where, count] : counts) {
      if (where.first != kind) continue;
      all += count;
      largest = std::max(largest, count);
    }
    if (all > 0) resources.push_back({kind, 1, all});
    for (int level = 2; level <= largest; level *= 2) {
      int amount = 0;
      for (const auto& [where, count] : counts) amount += where.first == kind ? count / level * level : 0;
      if (amount < all) resources.push_back({kind, level, amount});
    }
  }
  return resources;
}

StageOptions::StageOptions(const CostModel& model, Space space)
    : model_(model), space_(std::move(space)), unitCount_(model.model().unitCount()), counts_(model.cluster().nodes.size()) {
  for (const DeviceId device : space_.devices) ++counts_[static_cast<std::size_t>(device.node)][model.kindOf(device)];
  for (const int kind : space_.kinds) {
    for (const int tp : space_.tps) {
      int largest = 0;
      for (const std::map<int, int>& ofNode : counts_) {
        const auto found = ofNode.find(kind);
        if (found != ofNode.end()) largest = std::max(largest, found->second);
      }
      if (tp > largest) continue;
      for (const auto& [least, most] : space_.samples) {
        options_.push_back({kind, tp, least, most});
        costs_.push_back(costsOf(options_.back()));
      }
    }
  }
  rows_.resize(static_cast<std::size_t>(unitCount_));
}

StageOptions::Costs StageOptions::costsOf(const StageOption& option) const {
  const OpCosts& ops = model_.opCosts(option.kind, option.tp, option.samples);
  Costs costs;
  for (const UnitKind kind : {UnitKind::Embedding, UnitKind::Attention, UnitKind::Mlp, UnitKind::Head}) {
    costs.units[index(kind)] = unitCost(ops, kind, {});
    DeviceMemory device{.kind = option.kind};
    device.parameters = model_.parameters(kind, option.tp);
    device.shardedParameters = ceilDivide(device.parameters, space_.holders);
    costs.parameters[index(kind)] = device.parameters;
    const MemoryUse use = memoryUse(model_, device);
    costs.fixed[index(kind)] = (use.weights + use.gradients + use.optimizer).value;
  }
  if (const std::int64_t tied = model_.tiedParameters(option.tp); tied > 0) {
    DeviceMemory device{
        .kind = option.kind, .parameters = tied, .shardedParameters = tied / space_.holders};
    const MemoryUse use = memoryUse(model_, device);
    costs.fixedTied = (use.weights + use.gradients + use.optimizer).value;
  }
  if (space_.purpose == Purpose::Plan && model_.training().zeroStage >= 2) {
    const std::int64_t tied = model_.tiedParameters(option.tp), members = space_.exchangers;
    for (const UnitKind kind : {UnitKind::Embedding, UnitKind::Attention, UnitKind::Mlp, UnitKind::Head}) {
      const bool isEnd = kind == UnitKind::Embedding || kind == UnitKind::Head;
      const std::int64_t count = costs.parameters[index(kind)] - (isEnd ? tied : 0);
      costs.exchange[index(kind)] = ceilDivide(count * (3 * members - 2), members) * gradientBytesPerParameter();
    }
    costs.wholeTied = tied * gradientBytesPerParameter();
  }
  costs.reserved = model_.reservedOf(option.kind).value;
  costs.capacity = model_.capacityOf(option.kind).value;
  costs.boundary = kBoundaryBuffers * ops[static_cast<std::size_t>(Op::Norm1)].boundary.value;
  if (space_.purpose == Purpose::Bound) {
    static constexpr std::array kAll = {UnitKind::Embedding, UnitKind::Attention, UnitKind::Mlp, UnitKind::Head};
    costs.mixes = recomputeMixes(ops, kAll);
  } else if (!space_.mayRecompute) {
    costs.mixes.resize(1);  // of no step
  } else {
    static constexpr std::array kBlocks = {UnitKind::Attention, UnitKind::Mlp};
    costs.mixes = recomputeMixes(ops, kBlocks);
  }
  costs.send = sendOf(option);
  return costs;
}

/// The first rank of a stage's replica sends the samples of that replica at least once, whoever receives them, over a link of its
/// node: at best inside it if the node has room for another stage. A plan's stages cross nodes as often as they fill one, and get
/// what the nodes of the kind offer on average.
double StageOptions::sendOf(const StageOption& option) const {
  const Cluster& cluster = model_.cluster();
  struct Sum {
    double latency = 0, perByte = 0;
    int count = 0;
    void add(const LinkSpec& link, double flows) {
      latency += link.latency.value;
      perByte += flows / link.bandwidth.value;
      ++count;
    }
    [[nodiscard]] double send(double bytes) const { return (latency + bytes * perByte) / std::max(1, count); }
  };
  Seconds latency{kNever}, perByte{kNever};
  Sum inside, between;
  double crossing = 0;
  int groups = 0;
  const auto offer = [&](const LinkSpec& link) {
    latency = std::min(latency, link.latency);
    perByte = std::min(perByte, Seconds{1.0 / link.bandwidth.value});
  };
  const bool drawn = !cluster.links.empty() || !cluster.switches.empty();
  BytesPerSecond fastestNic, secondNic;
  Seconds leastLatency{kNever};
  int nodes = 0;  // that may be used
  for (std::size_t n = 0; n < cluster.nodes.size(); ++n) {
    const Node& node = cluster.nodes[n];
    if (counts_[n].empty()) continue;
    ++nodes;
    if (node.nic.bandwidth > fastestNic) secondNic = std::exchange(fastestNic, node.nic.bandwidth);
    else secondNic = std::max(secondNic, node.nic.bandwidth);
    leastLatency = std::min(leastLatency, node.nic.latency);
  }
  for (int n = 0; n < static_cast<int>(cluster.nodes.size()); ++n) {
    const Node& node = cluster.nodes[static_cast<std::size_t>(n)];
    const std::map<int, int>& ofNode = counts_[static_cast<std::size_t>(n)];
    const auto found = ofNode.find(option.kind);
    const int group = found == ofNode.end() ? 0 : found->second;
    if (group < option.tp) continue;
    int all = 0;
    for (const auto& [kind, count] : ofNode) all += count;
    ++groups;
    crossing += std::min(1.0, static_cast<double>(option.tp) / group);
    if (all > option.tp) {
      offer(node.intra);
      inside.add(node.intra, 1);
    }
    if (nodes < 2) continue;
    const double flows = node.nicPerDevice ? 1 : option.tp;
    if (drawn) {
      for (int other = 0; other < static_cast<int>(cluster.nodes.size()); ++other) {
        if (other == n || counts_[static_cast<std::size_t>(other)].empty()) continue;
        offer(model_.link({n, 0}, {other, 0}));
        between.add(model_.link({n, 0}, {other, 0}), flows);
      }
    } else {
      const BytesPerSecond others = node.nic.bandwidth == fastestNic ? std::max(secondNic, BytesPerSecond{0}) : fastestNic;
      offer({std::min(node.nic.bandwidth, others), std::max(node.nic.latency, leastLatency)});
      between.add(node.nic, flows);
    }
  }
  if (latency.value == kNever) return 0;  // the only stage there can be
  const std::int64_t perSample = model_.training().sequenceLength * model_.model().hidden * bytesOf(model_.training().precision);
  const auto bytes = static_cast<double>(option.samples * perSample);
  if (space_.purpose == Purpose::Bound) return (latency + bytes * perByte).value;
  if (inside.count == 0) return between.send(bytes);
  if (between.count == 0) return inside.send(bytes);
  const double part = crossing / groups;
  return (1 - part) * inside.send(bytes) + part * between.send(bytes);
}

StageOptions::Counts StageOptions::countsOf(UnitRange units) const {
  const int firstBlock = std::max(units.first, 1), lastBlock = std::min(units.last, unitCount_ - 1);
  Counts counts{};
  counts[index(UnitKind::Embedding)] = units.first == 0 ? 1 : 0;
  counts[index(UnitKind::Head)] = units.last == unitCount_ ? 1 : 0;
  if (lastBlock > firstBlock) {
    counts[index(UnitKind::Attention)] = lastBlock / 2 - firstBlock / 2;  // the odd units
    counts[index(UnitKind::Mlp)] = (lastBlock - firstBlock) - counts[index(UnitKind::Attention)];
  }
  return counts;
}

bool StageOptions::takeSteps(const Costs& costs, const Counts& counts, double inFlight, bool alone, Mix& mix) const {
  const RecomputeMixes& mixes = costs.mixes[mix.mixes];
  std::int64_t room = costs.capacity - costs.reserved;
  std::int64_t saved = 0;
  std::int64_t exchange = 0;
  std::array<std::int64_t, 4> workspace{};  // of a unit of each kind, all of which recompute the same
  for (std::size_t k = 0; k < 4; ++k) {
    if (counts[k] == 0) continue;
    room -= counts[k] * costs.fixed[k];
    saved += counts[k] * costs.units[k].saved.value;
    workspace[k] = costs.units[k].transient.value;
    exchange = std::max(exchange, costs.exchange[k]);
  }
  room -= exchange;
  if (alone) room += costs.fixedTied;
  else room -= costs.boundary;
  if (!alone && (counts[index(UnitKind::Embedding)] > 0 || counts[index(UnitKind::Head)] > 0)) room -= costs.wholeTied;
  const bool inPart = space_.purpose == Purpose::Bound;
  for (mix.step = 0;; ++mix.step) {
    mix.units = 0;
    const std::int64_t transient = std::max(inPart ? mixes.transient : 0, *std::ranges::max_element(workspace));
    const std::int64_t held = roundedUp(inFlight * static_cast<double>(saved));
    const std::int64_t lack = held + transient - room;
    if (lack <= 0) return true;
    if (mix.step == mixes.steps.size()) return false;
    const RecomputeStep& step = mixes.steps[mix.step];
    const int units = counts[index(step.kind)];
    if (units == 0) continue;
    if (inPart) {
      const double needed = static_cast<double>(lack) / (static_cast<double>(step.freed) * inFlight);
      if (needed <= units) {
        mix.seconds += needed * step.seconds;
        return true;
      }
    } else {
      // While some units recompute as before, there is the workspace of both.
      const std::int64_t now = held + std::max(transient, step.transient.value) - room;
      const std::int64_t needed = roundedUp(static_cast<double>(now) / (static_cast<double>(step.freed) * inFlight));
      if (needed < units) {
        mix.units = static_cast<int>(needed);
        mix.seconds += mix.units * step.seconds;
        return true;
      }
      workspace[index(step.kind)] = step.transient.value;
    }
    saved -= units * step.freed;
    mix.seconds += units * step.seconds;
  }
}

/// The fastest of the mixes; those that need more workspace are asked only where the ones before do not do without any time.
bool StageOptions::mixOf(const Costs& costs, const Counts& counts, double inFlight, bool alone, Mix& best) const {
  bool found = false;
  for (std::size_t m = 0; m < costs.mixes.size(); ++m) {
    Mix mix{.mixes = m};
    if (!takeSteps(costs, counts, inFlight, alone, mix) || (found && mix.seconds >= best.seconds)) continue;
    best = mix;
    found = true;
    if (best.seconds == 0) break;
  }
  return found;
}

double StageOptions::timeOf(const Costs& costs, const Counts& counts, double inFlight, bool alone) const {
  Mix mix;
  if (!mixOf(costs, counts, inFlight, alone, mix)) return kNever;
  for (std::size_t k = 0; k < 4; ++k) mix.seconds += counts[k] * (costs.units[k].forward + costs.units[k].backward).value;
  return mix.seconds;
}

void StageOptions::computeTimes(int inFlight, Row& row) const {
  row.times.resize(options_.size());
  std::vector<std::array<std::size_t, 5>> begins(options_.size());  // of inner[1], inner[0], first, last; and the end
  for (std::size_t o = 0; o < options_.size(); ++o) {
    std::array<std::size_t, 5>& begin = begins[o];
    const auto fill = [&](int most, auto&& unitsOf) {
      double longest = 0;
      for (int count = 1; count <= most; ++count) {
        const double time = timeOf(costs_[o], countsOf(unitsOf(count)), inFlight, false);
        if (time == kNever) break;
        longest = std::max(longest, time);  // one unit's rounding of a mix must not break the order
        row.values.push_back(space_.purpose == Purpose::Bound ? time : longest);
      }
    };
    const int behind = inFlight - 1;  // each of so many stages has a unit
    begin[0] = row.values.size();
    fill(unitCount_ - 1 - behind - 1, [](int count) { return UnitRange{1, 1 + count}; });
    begin[1] = row.values.size();
    fill(unitCount_ - 2 - behind - 1, [](int count) { return UnitRange{2, 2 + count}; });
    begin[2] = row.values.size();
    fill(unitCount_ - 1 - behind, [](int count) { return UnitRange{0, count}; });
    begin[3] = row.values.size();
    if (inFlight == 1) {
      fill(unitCount_ - 1, [this](int count) { return UnitRange{unitCount_ - count, unitCount_}; });
      row.times[o].alone = timeOf(costs_[o], countsOf({0, unitCount_}), 1, true);
    }
    begin[4] = row.values.size();
  }
  for (std::size_t o = 0; o < options_.size(); ++o) {
    const auto part = [&](std::size_t i) {
      return std::span<const double>(row.values).subspan(begins[o][i], begins[o][i + 1] - begins[o][i]);
    };
    row.times[o].inner = {part(1), part(0)};
    row.times[o].first = part(2);
    row.times[o].last = part(3);
  }
}

const std::vector<StageOptions::Times>& StageOptions::times(int inFlight) const {
  Row& row = rows_[static_cast<std::size_t>(inFlight - 1)];
  std::call_once(row.once, [&] { computeTimes(inFlight, row); });
  return row.times;
}

double StageOptions::forward(std::size_t option, UnitRange units) const {
  const Counts counts = countsOf(units);
  double sum = 0;
  for (std::size_t k = 0; k < 4; ++k) sum += counts[k] * costs_[option].units[k].forward.value;
  return sum;
}

double StageOptions::work(std::size_t option, UnitRange units) const {
  const Counts counts = countsOf(units);
  double sum = 0;
  for (std::size_t k = 0; k < 4; ++k)
    sum += counts[k] * (costs_[option].units[k].forward + costs_[option].units[k].backward).value;
  return sum;
}

std::int64_t StageOptions::parameters(std::size_t option, UnitRange units) const {
  const Counts counts = countsOf(units);
  std::int64_t sum = 0;
  for (std::size_t k = 0; k < 4; ++k) sum += counts[k] * costs_[option].parameters[k];
  if (units.size() == unitCount_) sum -= model_.tiedParameters(options_[option].tp);
  return sum;
}

double StageOptions::time(std::size_t option, UnitRange units, double inFlight) const {
  return timeOf(costs_[option], countsOf(units), inFlight, units.size() == unitCount_);
}

std::vector<Recompute> StageOptions::recompute(std::size_t option, UnitRange units, double inFlight) const {
  const Costs& costs = costs_[option];
  Mix mix;
  if (!mixOf(costs, countsOf(units), inFlight, units.size() == unitCount_, mix)) return {};
  const std::vector<RecomputeStep>& steps = costs.mixes[mix.mixes].steps;
  std::vector<Recompute> ranges;
  const auto add = [&](UnitRange range, OpSet ops) {
    range = {std::max(range.first, 1), std::min(range.last, unitCount_ - 1)};
    if (range.size() < 1 || ops.none()) return;
    Recompute recompute{range, {}};
    for (std::size_t op = 0; op < ops.size(); ++op) {
      if (ops[op]) recompute.ops.push_back(static_cast<Op>(op));
    }
    ranges.push_back(std::move(recompute));
  };
  for (const UnitKind kind : {UnitKind::Attention, UnitKind::Mlp}) {
    OpSet whole;  // what all units of the kind recompute
    for (std::size_t s = 0; s < mix.step; ++s) {
      if (steps[s].kind == kind) whole = steps[s].ops;
    }
    int border = units.first;  // units before it recompute more
    if (mix.units > 0 && steps[mix.step].kind == kind) {
      int seen = 0;
      while (seen < mix.units) seen += model_.model().unitKind(border++) == kind ? 1 : 0;
      add({units.first, border}, steps[mix.step].ops);
    }
    add({border, units.last}, whole);
  }
  return ranges;
}

}  // namespace evenkeel::optimal
