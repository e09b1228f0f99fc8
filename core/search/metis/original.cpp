// SPDX-License-Identifier: GPL-3.0-or-later
// The order of every sum and product is that of the original: its recorded costs are equal to the last bit.
#include "core/search/metis/original.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <span>

#include "core/search/metis/balance.h"

namespace evenkeel::metis {
namespace {

/// "5x one replica's memory" is what the original asks of a stage.
constexpr double kMemoryFactor = 5.0;
constexpr int kMostPartitions = 3;
/// GB/s to bytes per millisecond, as the original has it.
constexpr double kBytesPerUnit = 1024 * 1024;

double sumOf(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

/// Largest first.
std::vector<int> powersOfTwoIn(int number) {
  std::vector<int> powers;
  for (int power = 1 << 30; power > 0; power /= 2) {
    if ((number & power) != 0) powers.push_back(power);
  }
  return powers;
}

class OriginalSearch {
 public:
  OriginalSearch(const OriginalCase& given, const std::function<bool()>& stopped, const std::function<void(OriginalPlan&&)>& onPlan)
      : given_(given), stopped_(stopped), onPlan_(onPlan) {
    const std::vector<double>& layers = given.profiles.at({given.firstType, 1, 1}).layerMs;
    const double all = sumOf(layers);
    for (const double layer : layers) weights_.push_back(layer / all);
    for (const OriginalCase::Node& node : given.nodes) {
      firstBandwidth_.try_emplace(node.type, node.bandwidth);
      double& least = leastBandwidth_.try_emplace(node.type, node.bandwidth).first->second;
      least = std::min(least, node.bandwidth);
    }
    for (std::int64_t count = given.globalBatch; count >= 1; --count) {
      if (given.globalBatch % count == 0) microBatchCounts_.push_back(count);
    }
  }

  void run() {
    const int devices = given_.deviceCount(), mostStages = std::min(devices, given_.layers);
    for (std::size_t order = 0; order < given_.typeOrders.size(); ++order) {
      useOrder(given_.typeOrders[order]);
      bool isFirst = order > 0;
      for (int stages = order > 0 ? 2 : 1; stages <= mostStages; ++stages) {
        const std::vector<DeviceGroups> all = deviceGroups(devices, stages, given_.variance, given_.mostPermuted);
        if (all.empty()) continue;
        // Fault B1: the first list of every further order is visited with the number of stages still 1.
        if (isFirst) {
          for (const DeviceGroups& groups : all) visit(groups, 1);
        }
        isFirst = false;
        for (const DeviceGroups& groups : all) visit(groups, stages);
        if (stopped_()) return;
      }
    }
  }

 private:
  struct Stage {
    std::vector<std::string> types;  // of its ranks
    int firstRank = 0;
    bool isMixed = false;
  };
  using Degrees = std::vector<std::pair<int, int>>;
  struct Partition {
    std::vector<int> ends;
    std::vector<double> headRoom;
    int attempts = 0;
  };

  void useOrder(const std::vector<std::string>& order) {
    order_ = order;
    ranks_.clear();
    for (const std::string& type : order) {
      for (const OriginalCase::Node& node : given_.nodes) {
        if (node.type == type) ranks_.insert(ranks_.end(), static_cast<std::size_t>(node.devices), type);
      }
    }
  }

  /// The chain of strategies for each number of micro-batches (baseline-metis.md 3).
  void visit(const DeviceGroups& groups, int stagesCosted) {
    stages_.clear();
    int rank = 0;
    for (const int size : groups) {
      stages_.push_back({{ranks_.begin() + rank, ranks_.begin() + rank + size}, rank});
      Stage& stage = stages_.back();
      stage.isMixed = std::ranges::any_of(stage.types, [&](const std::string& type) { return type != stage.types.front(); });
      rank += size;
    }
    for (const std::int64_t microBatches : microBatchCounts_) {
      if (stopped_()) return;
      Degrees degrees;
      for (const int size : groups) degrees.emplace_back(size, 1);
      std::vector<double> headRoom;  // of the last partition, if there was one
      do {
        if (!isValid(degrees, microBatches) || !isProfiled(degrees, microBatches)) continue;
        const std::optional<Partition> partition = partitionFor(degrees, microBatches);
        headRoom.clear();
        if (!partition) continue;
        onPlan_(costed(groups, stagesCosted, degrees, microBatches, partition->ends));
        if (partition->attempts == 1) break;
        headRoom = partition->headRoom;
      } while (advance(degrees, headRoom));
    }
  }

  [[nodiscard]] std::int64_t samplesOf(int dp, std::int64_t microBatches) const { return given_.globalBatch / dp / microBatches; }

  [[nodiscard]] bool isValid(const Degrees& degrees, std::int64_t microBatches) const {
    return std::ranges::all_of(degrees, [&](const auto& degree) {
      const std::int64_t samples = samplesOf(degree.first, microBatches);
      return samples >= 1 && samples <= given_.mostBatch && degree.second <= given_.mostTp;
    });
  }

  /// All profiles that this strategy asks for are there; where one lacks, the original drops the plan or ends (faults B16, B17).
  [[nodiscard]] bool isProfiled(const Degrees& degrees, std::int64_t microBatches) const {
    const int samples = static_cast<int>(given_.globalBatch / microBatches);
    const auto known = [&](const std::string& type, int tp, int batch) { return given_.profiles.contains({type, tp, batch}); };
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const auto [dp, tp] = degrees[s];
      std::set<int> batches = {static_cast<int>(samplesOf(dp, microBatches))};
      if (!stages_[s].isMixed) {
        batches.insert(samples / dp);
      } else {
        const int stride = static_cast<int>(ranks_.size()) / dp;
        for (const auto& split : {splitOver(stages_[s].types, dp, tp, tp, samples), splitOver(ranks_, dp, stride, tp, samples)}) {
          for (const int share : split) {
            for (const int power : powersOfTwoIn(share)) batches.insert(power);
          }
        }
      }
      std::set<std::string> types(stages_[s].types.begin(), stages_[s].types.end());
      types.insert(order_.front());
      for (const std::string& type : types) {
        for (const int batch : batches) {
          if (!known(type, tp, batch)) return false;
        }
      }
    }
    return true;
  }

  /// Halves the dp of the stage with least head room that has any; without head rooms of the one with most dp.
  static bool advance(Degrees& degrees, const std::vector<double>& headRoom) {
    std::vector<std::size_t> order(degrees.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t s) { return headRoom.empty() ? 1.0 / degrees[s].first : headRoom[s]; });
    for (const std::size_t s : order) {
      if (degrees[s].first == 1) continue;
      degrees[s] = {degrees[s].first / 2, 2 * degrees[s].second};
      return true;
    }
    return false;
  }

  [[nodiscard]] double modelMs(const std::string& type, int tp, int batch) const {
    const auto [entry, isNew] = modelMs_.try_emplace({type, tp, batch}, 0.0);
    if (isNew) entry->second = sumOf(given_.profiles.at({type, tp, batch}).layerMs);
    return entry->second;
  }

  /// Samples by replica; a replica is of the type of its first rank (fault B8).
  [[nodiscard]] std::vector<int> splitOver(const std::vector<std::string>& types, int dp, int stride, int tp, int samples) const {
    std::vector<double> times;
    for (int r = 0; r < dp; ++r) times.push_back(modelMs(types[static_cast<std::size_t>(r * stride)], tp, 1));
    return splitSamples(samples, times);
  }

  [[nodiscard]] std::vector<double> performanceOf(const Degrees& degrees, int samples) const {
    std::vector<double> performance;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const Stage& stage = stages_[s];
      const auto [dp, tp] = degrees[s];
      double time = 0;
      if (!stage.isMixed) {
        time = modelMs(stage.types.front(), tp, samples / dp);
      } else {
        const std::vector<int> split = splitOver(stage.types, dp, tp, tp, samples);
        for (int r = 0; r < dp; ++r) {
          double sum = 0;
          for (const int power : powersOfTwoIn(split[static_cast<std::size_t>(r)]))
            sum += modelMs(stage.types[static_cast<std::size_t>(r * tp)], tp, power);
          time = std::max(time, sum);
        }
      }
      performance.push_back(time > 0 ? 1.0 / time : 0.0);
    }
    const double all = sumOf(performance);
    for (double& one : performance) one /= all;
    return performance;
  }

  /// Fault B18: five times one replica, by the profile of the first type, of the whole stage's memory.
  [[nodiscard]] double demandOf(std::size_t s, std::pair<int, int> degree, int samples, int first, int last) const {
    const auto [dp, tp] = degree;
    const auto memory = [&, tp = tp](int batch) {
      const std::vector<double>& layers = given_.profiles.at({order_.front(), tp, batch}).layerMemoryMb;
      return sumOf(std::span(layers).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first)));
    };
    double demand = 0.001;
    if (!stages_[s].isMixed) return demand + kMemoryFactor * memory(samples / dp);
    // The split is made as if the stage had all ranks of the cluster.
    const int stride = static_cast<int>(ranks_.size()) / dp;
    for (const int share : splitOver(ranks_, dp, stride, tp, samples)) {
      for (const int power : powersOfTwoIn(share)) demand += kMemoryFactor * memory(power);
    }
    return demand;
  }

  [[nodiscard]] std::optional<Partition> partitionFor(const Degrees& degrees, std::int64_t microBatches) const {
    const int samples = static_cast<int>(given_.globalBatch / microBatches);
    std::vector<double> performance = performanceOf(degrees, samples), capacity;
    for (const Stage& stage : stages_) {
      double memory = 0;
      for (const std::string& type : stage.types) memory += given_.memoryMb.at(type);
      capacity.push_back(memory);
    }
    for (int attempt = 1; attempt <= kMostPartitions; ++attempt) {
      Partition partition{.ends = {0}, .headRoom = {}, .attempts = attempt};
      // Fault B7: a lost layer shifts all behind it.
      for (const int count : balanceLayers(weights_, performance)) partition.ends.push_back(partition.ends.back() + count);
      std::vector<double> demand;
      for (std::size_t s = 0; s < stages_.size(); ++s) {
        demand.push_back(demandOf(s, degrees[s], samples, partition.ends[s], partition.ends[s + 1]));
        partition.headRoom.push_back(capacity[s] - demand[s]);
      }
      if (std::ranges::all_of(partition.headRoom, [](double room) { return room >= 0; })) return partition;
      const auto shifted = rebalance(performance, capacity, demand);
      if (!shifted) return std::nullopt;
      performance = *shifted;
    }
    return std::nullopt;
  }

  /// GB/s among ranks; the nodes are taken to be as large as the first (fault B19).
  [[nodiscard]] double bandwidthAmong(const std::vector<int>& ranks) const {
    const int perNode = given_.nodes.front().devices;
    std::set<int> nodes;
    double least = 0;
    for (const int rank : ranks) {
      nodes.insert(rank / perNode);
      const double bandwidth = leastBandwidth_.at(ranks_[static_cast<std::size_t>(rank)]);
      least = least == 0 ? bandwidth : std::min(least, bandwidth);
    }
    return nodes.size() == 1 ? firstBandwidth_.at(ranks_[static_cast<std::size_t>(ranks.front())]) : least;
  }

  [[nodiscard]] double executionOf(std::size_t s, std::pair<int, int> degree, int samples, int first, int last) const {
    const auto [dp, tp] = degree;
    const auto layersMs = [&, tp = tp](const std::string& type, int batch) {
      const std::vector<double>& layers = given_.profiles.at({type, tp, batch}).layerMs;
      return sumOf(std::span(layers).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first)));
    };
    const Stage& stage = stages_[s];
    if (!stage.isMixed) return layersMs(stage.types.front(), samples / dp);
    const std::vector<int> split = splitOver(stage.types, dp, tp, tp, samples);
    double slowest = 0;
    for (int r = 0; r < dp; ++r) {
      double sum = 0;
      for (const int power : powersOfTwoIn(split[static_cast<std::size_t>(r)]))
        sum += layersMs(stage.types[static_cast<std::size_t>(r * tp)], power);
      slowest = std::max(slowest, sum);
    }
    return slowest;
  }

  /// Bytes of parameters on one device.
  [[nodiscard]] double parametersOf(int tp, int first, int last) const {
    const std::vector<double>& bytes = given_.parameterBytes;
    double sum = 0;
    int middle = last - first;
    if (first == 0) {
      sum += bytes.front() / tp;
      --middle;
    }
    if (last == given_.layers) {
      sum += bytes.back() / tp;
      --middle;
    }
    return sum + middle * (bytes[1] / tp);
  }

  [[nodiscard]] double dpCostOf(std::size_t s, std::pair<int, int> degree, int first, int last) const {
    const auto [dp, tp] = degree;
    double slowest = 0;
    for (int r = 0; r < dp; ++r) {
      std::vector<int> ranks;  // as many as tp, not dp (fault B12)
      for (int j = 0; j < tp; ++j) ranks.push_back(stages_[s].firstRank + r + j * dp);
      const double bandwidth = bandwidthAmong(ranks);
      slowest = r == 0 ? bandwidth : std::min(slowest, bandwidth);
    }
    return 2 * (dp - 1) / (dp * (slowest * kBytesPerUnit)) * parametersOf(tp, first, last);
  }

  [[nodiscard]] double ppCostOf(std::size_t s, std::pair<int, int> degree, std::int64_t samples, int last) const {
    std::vector<int> ranks;
    for (std::size_t stage = s; stage <= s + 1; ++stage) {
      for (std::size_t i = 0; i < stages_[stage].types.size(); ++i)
        ranks.push_back(stages_[stage].firstRank + static_cast<int>(i));
    }
    const auto tokens = static_cast<double>(samples * given_.sequence);
    // Elements, not bytes; the vocabulary one layer too early.
    const double elements = last == given_.layers - 1 ? tokens * static_cast<double>(given_.vocabulary) / degree.second
                                                      : tokens * static_cast<double>(given_.hidden);
    return elements / (bandwidthAmong(ranks) * kBytesPerUnit);
  }

  /// Section 5.
  [[nodiscard]] OriginalPlan costed(const DeviceGroups& groups, int stagesCosted, const Degrees& degrees,
                                    std::int64_t microBatches, const std::vector<int>& ends) const {
    OriginalPlan plan{order_, groups, stagesCosted, microBatches, degrees, ends};
    const int samples = static_cast<int>(given_.globalBatch / microBatches);
    const double optimizer = 2 * given_.optimizerMs;
    std::vector<double> execution;
    for (std::size_t s = 0; s < static_cast<std::size_t>(stagesCosted); ++s) {
      const int first = ends[s], last = ends[s + 1];
      execution.push_back(executionOf(s, degrees[s], samples, first, last));
      plan.update = std::max(plan.update, optimizer / degrees[s].second * (static_cast<double>(last - first) / given_.layers));
      plan.dpCost = std::max(plan.dpCost, dpCostOf(s, degrees[s], first, last));
      if (s + 1 < static_cast<std::size_t>(stagesCosted))
        plan.ppCost += ppCostOf(s, degrees[s], samplesOf(degrees[s].first, microBatches), last);
    }
    const auto count = static_cast<double>(microBatches);
    plan.execution = (count - 1) * std::ranges::max(execution) + sumOf(execution);
    const auto lastStage = static_cast<std::size_t>(stagesCosted - 1);
    const auto [dp, tp] = degrees[lastStage];
    double residual = 0;
    bool isFirst = true;
    for (const std::string& type : stages_[lastStage].types) {
      const auto& profile = given_.profiles.at({type, tp, static_cast<int>(samplesOf(dp, microBatches))});
      const double one = profile.forwardBackwardMs - sumOf(profile.layerMs);
      residual = isFirst ? one : std::max(residual, one);
      isFirst = false;
    }
    plan.forwardBackwardSync = residual * count;
    plan.total =
        plan.execution + plan.forwardBackwardSync + plan.update + plan.dpCost + plan.ppCost + count * given_.batchGeneratorMs;
    return plan;
  }

  const OriginalCase& given_;
  const std::function<bool()>& stopped_;
  const std::function<void(OriginalPlan&&)>& onPlan_;
  std::vector<double> weights_;
  std::map<std::string, double> firstBandwidth_, leastBandwidth_;
  std::vector<std::int64_t> microBatchCounts_;
  mutable std::map<OriginalCase::Key, double> modelMs_;
  std::vector<std::string> order_, ranks_;  // of the node sequence at hand; types by rank
  std::vector<Stage> stages_;
};

}  // namespace

std::vector<OriginalPlan> searchAsOriginal(const OriginalCase& given, const std::stop_token& stop) {
  std::vector<OriginalPlan> plans;
  searchAsOriginal(
      given, [&] { return stop.stop_requested(); }, [&](OriginalPlan&& plan) { plans.push_back(std::move(plan)); });
  return plans;
}

void searchAsOriginal(const OriginalCase& given, const std::function<bool()>& stopped,
                      const std::function<void(OriginalPlan&&)>& onPlan) {
  OriginalSearch(given, stopped, onPlan).run();
}

std::size_t cheapest(const std::vector<OriginalPlan>& plans) {
  return static_cast<std::size_t>(std::ranges::min_element(plans, {}, &OriginalPlan::total) - plans.begin());
}

}  // namespace evenkeel::metis
