// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cost/sync_rings.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "core/cost/memory.h"

namespace evenkeel {

SyncRings::SyncRings(const CostModel& model, std::span<const Pipeline> pipelines, std::span<const SyncBlock> blocks)
    : model_(model), pipelines_(pipelines) {
  countFlows();
  countHops(blocks);
}

int SyncRings::slices(const SyncBlock& block) const {
  int all = 1;
  for (const StageRef& ref : block.holders) all = std::lcm(all, stageOf(pipelines_, ref).tp);
  return all;
}

SyncPart SyncRings::slice(const SyncBlock& block, int slices) const {
  const std::vector<DeviceId> members = membersOf(block);
  if (members.size() < 2) return {};
  const double steps = static_cast<double>(members.size() - 1);
  const double parts = static_cast<double>(members.size());
  const Training& training = model_.training();
  // All-reduce = reduce-scatter + all-gather of gradients; ZeRO gathers the weights instead.
  const std::int64_t gathered = training.zeroStage >= 1 ? bytesOf(training.precision) : gradientBytesPerParameter();
  const double bytes = static_cast<double>(block.parameters * (gradientBytesPerParameter() + gathered)) / slices;
  const Bytes message{static_cast<std::int64_t>(bytes / 2)};  // the ring is kept full: it runs as fast as long messages
  const double collectives = training.gradientSync == GradientSync::Tensor ? block.tensors : 1;
  const Ring flat = ringOf(members, message);
  SyncPart part{.members = static_cast<int>(members.size()),
                .parameters = block.parameters / slices,
                .bytes = {static_cast<std::int64_t>(steps / parts * bytes)},
                .from = flat.from,
                .to = flat.to,
                .sharing = flat.sharing};
  part.time = (steps / parts * bytes) * flat.perByte + (2.0 * steps * collectives) * flat.latency;
  if (const std::size_t perNode = membersOfEachNode(members); perNode > 1) {
    const Seconds byNodes = hierarchicalTime(members, perNode, bytes, collectives);
    part.isHierarchical = byNodes < part.time;
    part.time = std::min(part.time, byNodes);
  }
  return part;
}

/// Rings that leave each node at once: one for each place in a pipeline and tp rank that the node holds.
void SyncRings::countFlows() {
  std::vector<std::set<std::pair<int, std::size_t>>> places(model_.cluster().nodes.size());
  for (const Pipeline& pipeline : pipelines_) {
    for (const Stage& stage : pipeline.stages) {
      for (std::size_t d = 0; d < stage.devices.size(); ++d) {
        places[static_cast<std::size_t>(stage.devices[d].node)].emplace(stage.units.first,
                                                                        d % static_cast<std::size_t>(stage.tp));
      }
    }
  }
  for (std::size_t n = 0; n < places.size(); ++n) flows_.push_back(static_cast<int>(places[n].size()));
}

/// The first device of each replica of each holder: the members of the ring of the first slice. Sorted.
std::vector<DeviceId> SyncRings::membersOf(const SyncBlock& block) const {
  std::vector<DeviceId> members;
  for (const StageRef& ref : block.holders) {
    const Stage& stage = stageOf(pipelines_, ref);
    for (int r = 0; r < stage.dp; ++r) members.push_back(stage.devices[static_cast<std::size_t>(r * stage.tp)]);
  }
  std::ranges::sort(members);
  return members;
}

/// Steps of rings that cross each limited switch at once: those of the first ring of each stage of one pipeline, whose devices
/// are all unlike; the pipeline with most counts.
void SyncRings::countHops(std::span<const SyncBlock> blocks) {
  hops_.assign(model_.cluster().switches.size(), 0);
  if (std::ranges::none_of(model_.cluster().switches, [](const Switch& s) { return s.total.value > 0; })) return;
  std::map<StageRef, const SyncBlock*> firstOf;
  for (const SyncBlock& block : blocks) {
    for (const StageRef& ref : block.holders) firstOf.try_emplace(ref, &block);
  }
  for (std::size_t p = 0; p < pipelines_.size(); ++p) {
    std::vector<int> hops(hops_.size(), 0);
    for (std::size_t s = 0; s < pipelines_[p].stages.size(); ++s) {
      const SyncBlock& block = *firstOf.at({p, s});
      const std::vector<DeviceId> members = membersOf(block);
      if (members.size() < 2) continue;
      for (std::size_t i = 0; i < members.size(); ++i) {
        for (const int index : model_.limitedSwitches(members[i], members[(i + 1) % members.size()]))
          hops[static_cast<std::size_t>(index)] += stageOf(pipelines_, {p, s}).tp;
      }
    }
    for (std::size_t index = 0; index < hops.size(); ++index) hops_[index] = std::max(hops_[index], hops[index]);
  }
}

/// `lanes` of them run at once, each over other devices of the same nodes.
SyncRings::Ring SyncRings::ringOf(std::span<const DeviceId> members, Bytes message, std::size_t lanes) const {
  Ring ring;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const DeviceId a = members[i], b = members[(i + 1) % members.size()];
    const LinkSpec link = model_.link(a, b);
    const auto use = [&](double sharing, BytesPerSecond bandwidth) {
      const Seconds perByte{sharing / bandwidth.value};
      if (perByte > ring.perByte) ring = {perByte, ring.latency, a, b, sharing};
    };
    use(a.node == b.node ? 1.0 : std::max(sharingOf(a.node), sharingOf(b.node)), link.bandwidthFor(message));
    for (const int index : model_.limitedSwitches(a, b)) {
      const auto s = static_cast<std::size_t>(index);
      use(std::max(1, hops_[s]) * static_cast<double>(lanes), model_.cluster().switches[s].total);
    }
    ring.latency = std::max(ring.latency, link.latency);
  }
  return ring;
}

/// How many of the sorted members each node has, if that is the same for two nodes and more, all with a NIC for each device;
/// else 0.
std::size_t SyncRings::membersOfEachNode(const std::vector<DeviceId>& members) const {
  std::size_t perNode = 0;
  while (perNode < members.size() && members[perNode].node == members.front().node) ++perNode;
  if (perNode == members.size() || members.size() % perNode != 0) return 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const bool isSameNode = members[i].node == members[i / perNode * perNode].node;
    const bool isNextNode = i % perNode != 0 || i == 0 || members[i].node != members[i - 1].node;
    if (!isSameNode || !isNextNode || !model_.cluster().nodes[static_cast<std::size_t>(members[i].node)].nicPerDevice) return 0;
  }
  return perNode;
}

/// Reduce-scatter inside each node, rings of the parts over all NICs at once, all-gather inside each node.
Seconds SyncRings::hierarchicalTime(const std::vector<DeviceId>& members, std::size_t perNode, double bytes,
                                    double collectives) const {
  const double k = static_cast<double>(perNode), nodes = static_cast<double>(members.size()) / k;
  const Bytes whole{static_cast<std::int64_t>(bytes / 2)}, partOf{static_cast<std::int64_t>(bytes / 2 / k)};
  Ring inside;
  for (std::size_t first = 0; first < members.size(); first += perNode) {
    const Ring ring = ringOf(std::span(members).subspan(first, perNode), whole);
    inside.perByte = std::max(inside.perByte, ring.perByte);
    inside.latency = std::max(inside.latency, ring.latency);
  }
  std::vector<DeviceId> firsts;
  for (std::size_t i = 0; i < members.size(); i += perNode) firsts.push_back(members[i]);
  const Ring between = ringOf(firsts, partOf, perNode);
  return ((k - 1) / k * bytes) * inside.perByte + ((nodes - 1) / nodes * bytes / k) * between.perByte +
         (2.0 * collectives * (k - 1)) * inside.latency + (2.0 * collectives * (nodes - 1)) * between.latency;
}

double SyncRings::sharingOf(int node) const {
  const auto n = static_cast<std::size_t>(node);
  return model_.cluster().nodes[n].nicPerDevice ? 1.0 : flows_[n];
}

}  // namespace evenkeel
