// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <tuple>
#include <vector>

#include "core/cost/runtime_traits.h"
#include "core/cost/unit_cost.h"
#include "core/plan/plan.h"

namespace evenkeel {

/// Of a device's memory, left free for fragmentation and whatever nobody counts (architecture.md, Defaults).
inline constexpr double kMemoryReserve = 0.06;

/// What the cost functions ask again and again about one problem, kept: op costs by device kind, parameters of a unit, links.
/// Refers to its arguments, which must outlive it. Thread-safe; the same question has the same answer.
class CostModel {
 public:
  CostModel(const Cluster& cluster, const Model& model, const Training& training, const Profile& profile,
            const RuntimeTraits& runtime = evenkeelRuntime());

  [[nodiscard]] const Cluster& cluster() const { return cluster_; }
  [[nodiscard]] const Model& model() const { return model_; }
  [[nodiscard]] const Training& training() const { return training_; }
  [[nodiscard]] const Profile& profile() const { return profile_; }
  [[nodiscard]] const RuntimeTraits& runtime() const { return runtime_; }

  /// Devices of one kind cost the same: one type, in nodes with the same intra link (which carries tp collectives).
  [[nodiscard]] int kindOf(DeviceId device) const;
  [[nodiscard]] int kindCount() const { return static_cast<int>(kinds_.size()); }
  /// The type with the intra link of its nodes.
  [[nodiscard]] const DeviceType& typeOfKind(int kind) const { return kinds_[static_cast<std::size_t>(kind)].type; }
  [[nodiscard]] int typeIndexOfKind(int kind) const { return kinds_[static_cast<std::size_t>(kind)].typeIndex; }

  /// Memory that plans may fill, and what the framework holds of it.
  [[nodiscard]] Bytes capacityOf(int kind) const { return kinds_[static_cast<std::size_t>(kind)].capacity; }
  [[nodiscard]] Bytes reservedOf(int kind) const { return kinds_[static_cast<std::size_t>(kind)].reserved; }

  /// The training precision must exist on the kind. As the runtime makes them, which may differ from the profile.
  [[nodiscard]] const OpCosts& opCosts(int kind, int tp, std::int64_t samples) const;

  /// Parameters of one unit that each device of a tp group stores. A tied head counts its copy of the embedding.
  [[nodiscard]] std::int64_t parameters(UnitKind kind, int tp) const;
  /// The token embedding that a tied head shares with the embedding unit; 0 if it is not tied.
  [[nodiscard]] std::int64_t tiedParameters(int tp) const;

  /// Cluster::linkBetween, remembered per pair of nodes where the cluster draws links or switches.
  [[nodiscard]] LinkSpec link(DeviceId a, DeviceId b) const;
  /// Those of Cluster::switchesBetween that limit what passes them in total. Empty in most clusters, and then O(1).
  [[nodiscard]] std::span<const int> limitedSwitches(DeviceId a, DeviceId b) const;

 private:
  struct Kind {
    int typeIndex = 0;
    DeviceType type;
    Bytes capacity, reserved;
    DeviceTraits traits;
  };
  struct Way {
    LinkSpec link;
    std::vector<int> limitedSwitches;
  };
  [[nodiscard]] const Way& way(int first, int second) const;
  [[nodiscard]] OpCosts computeCosts(int kind, int tp, std::int64_t samples) const;
  [[nodiscard]] std::int64_t countParameters(UnitKind kind, int tp) const;

  const Cluster& cluster_;
  const Model& model_;
  const Training& training_;
  const Profile& profile_;
  const RuntimeTraits& runtime_;
  std::vector<Kind> kinds_;
  std::vector<std::vector<int>> kindOfDevice_;  // by node, index
  static constexpr int kKnownTps = 16;          // of most plans; others are counted when they are asked for
  std::array<std::array<std::int64_t, kKnownTps + 1>, 4> parameters_{};  // by UnitKind, tp

  mutable std::shared_mutex costsMutex_, linksMutex_;
  mutable std::map<std::tuple<int, int, std::int64_t>, OpCosts> costs_;
  mutable std::map<std::pair<int, int>, Way> ways_;  // of two nodes, the lower one first
  bool hasLimitedSwitches_ = false;
};

}  // namespace evenkeel
