// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/optimal/other_devices.h"

#include <algorithm>
#include <map>
#include <span>

namespace evenkeel::optimal {
namespace {

constexpr int kMostRounds = 8;
constexpr std::size_t kMostSplits = 4000;

}  // namespace

void tryOtherDevices(SearchSession& session, const Limits& limits) {
  const CostModel& model = session.model();
  struct Group {
    std::size_t pipeline, stage;
    int replica;
  };
  const auto devicesOf = [](std::vector<Pipeline>& of, const Group& group) {
    Stage& stage = of[group.pipeline].stages[group.stage];
    return std::span(stage.devices)
        .subspan(static_cast<std::size_t>(group.replica * stage.tp), static_cast<std::size_t>(stage.tp));
  };
  for (int round = 0; round < kMostRounds && !session.stopped() && !session.incumbent().empty(); ++round) {
    std::vector<Pipeline> now = session.incumbent();
    const Seconds before = session.incumbentTime();
    std::vector<Group> groups;
    std::map<std::pair<int, int>, std::vector<DeviceId>> idle;  // by (kind, node)
    for (const DeviceId device : limits.devices) idle[{model.kindOf(device), device.node}].push_back(device);
    for (std::size_t p = 0; p < now.size(); ++p) {
      for (std::size_t s = 0; s < now[p].stages.size(); ++s) {
        for (int r = 0; r < now[p].stages[s].dp; ++r) groups.push_back({p, s, r});
        for (const DeviceId device : now[p].stages[s].devices) std::erase(idle[{model.kindOf(device), device.node}], device);
      }
    }
    std::vector<std::pair<Group, Group>> swaps;
    std::vector<std::pair<Group, std::vector<DeviceId>>> moves;
    for (std::size_t a = 0; a < groups.size(); ++a) {
      const auto first = devicesOf(now, groups[a]);
      for (std::size_t b = a + 1; b < groups.size(); ++b) {
        const auto second = devicesOf(now, groups[b]);
        if (first.size() == second.size() && first[0].node != second[0].node && model.kindOf(first[0]) == model.kindOf(second[0]))
          swaps.emplace_back(groups[a], groups[b]);
      }
      for (const auto& [where, devices] : idle) {
        if (where.first != model.kindOf(first[0]) || where.second == first[0].node || devices.size() < first.size()) continue;
        moves.emplace_back(groups[a], std::vector<DeviceId>(devices.begin(), devices.begin() + std::ssize(first)));
      }
    }
    // A stage without replicas handing some of its units to idle devices in front of it or behind it.
    struct Split {
      Group group;
      int cut;
      bool isFront;
      std::vector<DeviceId> devices;
    };
    std::vector<Split> splits;
    for (const Group& group : groups) {
      const Stage& stage = now[group.pipeline].stages[group.stage];
      if (stage.dp > 1 || !stage.recompute.empty()) continue;
      for (const auto& [where, devices] : idle) {
        if (std::ssize(devices) < stage.tp) continue;
        for (int cut = stage.units.first + 1; cut < stage.units.last && splits.size() < kMostSplits; ++cut) {
          for (const bool isFront : {true, false})
            splits.push_back({group, cut, isFront, std::vector<DeviceId>(devices.begin(), devices.begin() + stage.tp)});
        }
      }
    }
    session.consider(
        swaps.size() + moves.size() + splits.size(),
        [&](std::size_t i) {
          std::vector<Pipeline> changed = now;
          if (i < swaps.size()) {
            std::ranges::swap_ranges(devicesOf(changed, swaps[i].first), devicesOf(changed, swaps[i].second));
          } else if (i < swaps.size() + moves.size()) {
            const auto& [group, devices] = moves[i - swaps.size()];
            std::ranges::copy(devices, devicesOf(changed, group).begin());
          } else {
            const Split& split = splits[i - swaps.size() - moves.size()];
            std::vector<Stage>& stages = changed[split.group.pipeline].stages;
            const auto at = stages.begin() + static_cast<std::ptrdiff_t>(split.group.stage);
            Stage other = *at;
            other.devices = split.devices;
            (split.isFront ? other.units.last : other.units.first) = split.cut;
            (split.isFront ? at->units.first : at->units.last) = split.cut;
            stages.insert(split.isFront ? at : std::next(at), std::move(other));
          }
          return changed;
        },
        "optimal: other devices");
    if (session.incumbentTime() >= before) return;
  }
}

}  // namespace evenkeel::optimal
