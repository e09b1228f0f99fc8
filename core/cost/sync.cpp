// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cost/sync.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <numeric>
#include <set>

#include "core/cost/memory.h"
#include "core/profile/analytic_profile.h"

namespace evenkeel {
namespace {

struct StageRef {
  std::size_t pipeline, stage;
  auto operator<=>(const StageRef&) const = default;
};

/// Parameters with the same holders: those of some units, or the tied token embedding.
struct Block {
  std::int64_t parameters = 0;  // unsplit
  int tensors = 0;
  std::vector<StageRef> holders;
};

class Sync {
 public:
  Sync(const CostModel& model, std::span<const Pipeline> pipelines) : model_(model), pipelines_(pipelines) {
    countFlows();
    if (model.training().gradientSync == GradientSync::Device) findConnectedSets();
    else findBlocks();
  }

  SyncTime run() const {
    SyncTime time;
    std::map<StageRef, Seconds> ofStage;
    for (const Block& block : blocks_) {
      const int slices = largestTp(block);
      const Seconds ring = ringTime(block, slices);
      for (const StageRef& ref : block.holders) {
        Seconds& sum = ofStage[ref];
        sum += static_cast<double>(slices / stageOf(ref).tp) * ring;  // a rank holds that many slices
        time.sync = std::max(time.sync, sum);
      }
    }
    time.optimizer = optimizerTime();
    return time;
  }

  const std::vector<Block>& blocks() const { return blocks_; }

  std::vector<SyncPart> slowestParts() const {
    std::map<StageRef, std::vector<SyncPart>> ofStage;
    for (const Block& block : blocks_) {
      const int slices = largestTp(block);
      SyncPart part;
      if (ringTime(block, slices, &part) == Seconds{}) continue;
      for (const StageRef& ref : block.holders) {
        const std::int64_t held = slices / stageOf(ref).tp;
        SyncPart own = part;
        own.parameters = held * block.parameters / slices;
        own.bytes = held * part.bytes;
        own.time = static_cast<double>(held) * part.time;
        ofStage[ref].push_back(own);
      }
    }
    const auto sumOf = [](const std::vector<SyncPart>& parts) {
      Seconds sum;
      for (const SyncPart& part : parts) sum += part.time;
      return sum;
    };
    const auto slowest = std::ranges::max_element(ofStage, {}, [&](const auto& entry) { return sumOf(entry.second); });
    return slowest == ofStage.end() ? std::vector<SyncPart>{} : slowest->second;
  }

 private:
  const Stage& stageOf(const StageRef& ref) const { return pipelines_[ref.pipeline].stages[ref.stage]; }

  [[nodiscard]] bool hasTied() const { return model_.tiedParameters(1) > 0; }

  /// Unsplit parameters and tensors of a unit, the tied embedding left out.
  void addUnit(int unit, Block& block) const {
    const UnitKind kind = model_.model().unitKind(unit);
    block.parameters += model_.parameters(kind, 1);
    block.tensors += static_cast<int>(opsOf(kind).size());
    if ((kind == UnitKind::Embedding || kind == UnitKind::Head) && hasTied()) block.parameters -= model_.tiedParameters(1);
  }

  void findBlocks() {
    std::set<int> cuts;
    for (const Pipeline& pipeline : pipelines_) {
      for (const Stage& stage : pipeline.stages) cuts.insert(stage.units.first);
    }
    // The first and the last unit are blocks of their own, because of the tied embedding.
    const int count = model_.model().unitCount();
    cuts.insert({1, count - 1, count});
    std::vector<std::size_t> at(pipelines_.size(), 0);
    for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut) {
      Block block;
      for (int unit = *cut; unit < *std::next(cut); ++unit) addUnit(unit, block);
      for (std::size_t p = 0; p < pipelines_.size(); ++p) {
        while (pipelines_[p].stages[at[p]].units.last <= *cut) ++at[p];
        block.holders.push_back({p, at[p]});
      }
      blocks_.push_back(std::move(block));
    }
    if (!hasTied()) return;
    Block tied{.parameters = model_.tiedParameters(1), .tensors = 1, .holders = {}};
    for (std::size_t p = 0; p < pipelines_.size(); ++p) {
      tied.holders.push_back({p, 0});
      if (pipelines_[p].stages.size() > 1) tied.holders.push_back({p, pipelines_[p].stages.size() - 1});
    }
    blocks_.push_back(std::move(tied));
  }

  /// Stages are connected where they share a unit or hold the two ends of a tied embedding.
  void findConnectedSets() {
    std::vector<int> root(static_cast<std::size_t>(model_.model().unitCount()));
    std::iota(root.begin(), root.end(), 0);
    const auto rootOf = [&](int unit) {
      while (root[static_cast<std::size_t>(unit)] != unit) unit = root[static_cast<std::size_t>(unit)];
      return unit;
    };
    const auto connect = [&](int a, int b) {
      root[static_cast<std::size_t>(std::max(rootOf(a), rootOf(b)))] = std::min(rootOf(a), rootOf(b));
    };
    for (const Pipeline& pipeline : pipelines_) {
      for (const Stage& stage : pipeline.stages) {
        for (int unit = stage.units.first + 1; unit < stage.units.last; ++unit) connect(stage.units.first, unit);
      }
    }
    if (hasTied()) connect(0, model_.model().unitCount() - 1);
    std::map<int, Block> sets;
    for (int unit = 0; unit < model_.model().unitCount(); ++unit) addUnit(unit, sets[rootOf(unit)]);
    if (hasTied()) sets[rootOf(0)].parameters += model_.tiedParameters(1);
    for (std::size_t p = 0; p < pipelines_.size(); ++p) {
      for (std::size_t s = 0; s < pipelines_[p].stages.size(); ++s)
        sets[rootOf(pipelines_[p].stages[s].units.first)].holders.push_back({p, s});
    }
    for (auto& [first, block] : sets) {
      block.tensors = 1;
      blocks_.push_back(std::move(block));
    }
  }

  /// Rings that leave each node at once: one for each place in a pipeline and tp rank that the node holds.
  void countFlows() {
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

  int largestTp(const Block& block) const {
    int largest = 1;
    for (const StageRef& ref : block.holders) largest = std::lcm(largest, stageOf(ref).tp);
    return largest;
  }

  /// A ring over some devices: seconds for a byte that every member sends, and of a step.
  struct Ring {
    Seconds perByte, latency;
    DeviceId from, to;  // its slowest link
    double sharing = 1;
  };
  Ring ringOf(std::span<const DeviceId> members, Bytes message) const {
    Ring ring;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const DeviceId a = members[i], b = members[(i + 1) % members.size()];
      const LinkSpec link = model_.link(a, b);
      const double sharing = a.node == b.node ? 1.0 : std::max(sharingOf(a.node), sharingOf(b.node));
      const Seconds ofLink{sharing / link.bandwidthFor(message).value};
      if (ofLink > ring.perByte) {
        ring.perByte = ofLink;
        ring.from = a;
        ring.to = b;
        ring.sharing = sharing;
      }
      ring.latency = std::max(ring.latency, link.latency);
    }
    return ring;
  }

  /// One slice of the block. All slices take as long: a tp group is inside a node, so its ranks have the same links.
  Seconds ringTime(const Block& block, int slices, SyncPart* part = nullptr) const {
    std::vector<DeviceId> members;
    for (const StageRef& ref : block.holders) {
      const Stage& stage = stageOf(ref);
      for (int r = 0; r < stage.dp; ++r) members.push_back(stage.devices[static_cast<std::size_t>(r * stage.tp)]);
    }
    if (members.size() < 2) return {};
    std::ranges::sort(members);
    const double steps = static_cast<double>(members.size() - 1);
    const double parts = static_cast<double>(members.size());
    const Training& training = model_.training();
    // All-reduce = reduce-scatter + all-gather of gradients; ZeRO gathers the weights instead.
    const std::int64_t gathered = training.zeroStage >= 1 ? bytesOf(training.precision) : gradientBytesPerParameter();
    const double bytes = static_cast<double>(block.parameters * (gradientBytesPerParameter() + gathered)) / slices;
    const Bytes message{static_cast<std::int64_t>(bytes / 2)};  // the ring is kept full: it runs as fast as long messages
    const double collectives = training.gradientSync == GradientSync::Tensor ? block.tensors : 1;
    const Ring flat = ringOf(members, message);
    Seconds time = (steps / parts * bytes) * flat.perByte + (2.0 * steps * collectives) * flat.latency;
    bool isHierarchical = false;
    if (const std::size_t perNode = membersOfEachNode(members); perNode > 1) {
      const Seconds byNodes = hierarchicalTime(members, perNode, bytes, collectives);
      isHierarchical = byNodes < time;
      time = std::min(time, byNodes);
    }
    if (part != nullptr) {
      part->from = flat.from;
      part->to = flat.to;
      part->sharing = flat.sharing;
      part->members = static_cast<int>(members.size());
      part->bytes = {static_cast<std::int64_t>(steps / parts * bytes)};
      part->time = time;
      part->isHierarchical = isHierarchical;
    }
    return time;
  }

  /// How many of the sorted members each node has, if that is the same for two nodes and more, all with a NIC for each device;
  /// else 0.
  std::size_t membersOfEachNode(const std::vector<DeviceId>& members) const {
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
  Seconds hierarchicalTime(const std::vector<DeviceId>& members, std::size_t perNode, double bytes, double collectives) const {
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
    const Ring between = ringOf(firsts, partOf);
    return ((k - 1) / k * bytes) * inside.perByte + ((nodes - 1) / nodes * bytes / k) * between.perByte +
           (2.0 * collectives * (k - 1)) * inside.latency + (2.0 * collectives * (nodes - 1)) * between.latency;
  }

  double sharingOf(int node) const {
    const auto n = static_cast<std::size_t>(node);
    return model_.cluster().nodes[n].nicPerDevice ? 1.0 : flows_[n];
  }

  /// Bound by memory traffic; ZeRO shards it over the pipelines' replicas of the stage's least held unit.
  Seconds optimizerTime() const {
    const MemoryByReplica memory = memoryOf(model_, pipelines_);
    Seconds slowest;
    for (std::size_t p = 0; p < pipelines_.size(); ++p) {
      for (std::size_t s = 0; s < pipelines_[p].stages.size(); ++s) {
        const Stage& stage = pipelines_[p].stages[s];
        for (int r = 0; r < stage.dp; ++r) {
          const DeviceType& type = model_.typeOfKind(model_.kindOf(stage.devices[static_cast<std::size_t>(r * stage.tp)]));
          const DeviceClass& c = deviceClassOf(type);
          const double updated = memory[p][s][static_cast<std::size_t>(r)].optimizer /
                                 Bytes{optimizerBytesPerParameter(model_.training().precision)};
          const BytesPerSecond bandwidth = type.memoryBandwidth * (c.bandwidthEfficiency * type.speed);
          slowest = std::max(slowest, Seconds{updated * c.optimizerTraffic / bandwidth.value});
        }
      }
    }
    return slowest;
  }

  const CostModel& model_;
  std::span<const Pipeline> pipelines_;
  std::vector<Block> blocks_;
  std::vector<int> flows_;  // by node
};

}  // namespace

SyncTime syncTime(const CostModel& model, std::span<const Pipeline> pipelines) { return Sync(model, pipelines).run(); }

std::vector<SyncPart> slowestSync(const CostModel& model, std::span<const Pipeline> pipelines) {
  return Sync(model, pipelines).slowestParts();
}

std::vector<std::vector<std::int64_t>> paddedParameters(const CostModel& model, std::span<const Pipeline> pipelines) {
  assert(model.training().gradientSync == GradientSync::Device);
  std::vector<std::vector<std::int64_t>> padded(pipelines.size());
  for (std::size_t p = 0; p < pipelines.size(); ++p) padded[p].resize(pipelines[p].stages.size());
  const Sync sync(model, pipelines);
  for (const Block& block : sync.blocks()) {
    int least = kMaxDevices;
    for (const StageRef& ref : block.holders) least = std::min(least, pipelines[ref.pipeline].stages[ref.stage].tp);
    for (const StageRef& ref : block.holders) padded[ref.pipeline][ref.stage] = (block.parameters + least - 1) / least;
  }
  return padded;
}

}  // namespace evenkeel
