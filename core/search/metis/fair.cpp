// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/metis/fair.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>

#include "core/search/limits.h"
#include "core/search/metis/balance.h"
#include "core/search/metis/device_groups.h"
#include "core/search/metis/layout.h"
#include "core/search/metis/layout_bound.h"
#include "core/search/stage_table.h"

namespace evenkeel::metis {
namespace {

constexpr int kMostPartitions = 3;
/// Where nothing fits, so many layouts are looked at to name the one that lacks least.
constexpr int kMostVisitsForClosest = 400;
/// More kinds of devices than this are not permuted: the order is then by memory, most first.
constexpr std::size_t kMostKindsPermuted = 4;

int ceilDivide(int a, int b) { return (a + b - 1) / b; }

class FairSearch {
 public:
  FairSearch(SearchSession& session, const FairOptions& options, std::size_t most)
      : session_(session),
        model_(session.model()),
        options_(options),
        most_(most),
        limits_(session.limits()),
        tables_(model_, {}),
        bound_(model_, limits_, options_, tables_),
        layers_(model_.model().layers + 2),
        stored_(static_cast<std::size_t>((model_.model().unitCount() + 1) * (model_.model().unitCount() + 1)), -1) {
    for (const DeviceId device : limits_.devices) kinds_[model_.kindOf(device)].push_back(device);
    findMicroBatches();
  }

  std::vector<FairPlan> run() {
    std::vector<int> order;
    for (const auto& [kind, devices] : kinds_) order.push_back(kind);
    if (order.size() > kMostKindsPermuted) {
      std::ranges::stable_sort(order, std::greater<>{}, [&](int kind) { return model_.capacityOf(kind).value; });
      visitOrder(order);
    } else {
      do visitOrder(order);
      while (std::ranges::next_permutation(order).found && !session_.stopped());
    }
    if (found_.empty() && !closest_ && ruledOut_) {
      looksForClosest_ = true;
      visitOrder(order);
    }
    sortAndTrim();
    if (found_.empty() && closest_) found_.push_back(*closest_);
    std::vector<FairPlan> plans;
    for (const Costed& one : found_)
      plans.push_back({pipelinesOf(one, model_.model(), session_.problem().training.globalBatch), {one.estimate}});
    return plans;
  }

 private:
  /// Samples of a micro-batch: the divisors of the global batch, as in the original, and powers of two between them, so that a
  /// prime batch has more than two choices; the last micro-batch is then smaller (mends B15).
  void findMicroBatches() {
    const std::int64_t batch = session_.problem().training.globalBatch;
    std::set<int> sizes;
    const std::int64_t most =
        std::min<std::int64_t>(batch, std::int64_t{options_.mostSamples} * static_cast<std::int64_t>(limits_.devices.size()));
    for (std::int64_t size = 1; size <= most; ++size) {
      if (batch % size == 0 || std::has_single_bit(static_cast<std::uint64_t>(size))) sizes.insert(static_cast<int>(size));
    }
    microBatches_.assign(sizes.begin(), sizes.end());
  }

  void visitOrder(const std::vector<int>& order) {
    std::vector<DeviceId> ranks;
    for (const int kind : order) ranks.insert(ranks.end(), kinds_.at(kind).begin(), kinds_.at(kind).end());
    useWeightsOf(order);
    // Few layers and an odd number of devices may leave no list of groups: then the last devices stay idle (mends B4).
    for (int devices = static_cast<int>(ranks.size()); devices > 0; --devices) {
      visitSplits(ranks, devices);
      if (!found_.empty() || closest_ || ruledOut_) return;
    }
  }

  void visitSplits(const std::vector<DeviceId>& ranks, int devices) {
    for (int stages = 1; stages <= std::min(devices, layers_); ++stages) {
      for (const DeviceGroups& groups : deviceGroups(devices, stages, options_.variance, options_.mostPermuted)) {
        Layout split;
        auto next = ranks.begin();
        for (const int size : groups) {
          split.push_back({{next, next + size}, {}});
          countKinds(split.back());
          next += size;
        }
        const auto shared = std::make_shared<const Layout>(std::move(split));
        for (const int microBatch : microBatches_) {
          if (session_.stopped()) return;
          visit(shared, microBatch);
        }
      }
    }
  }

  void countKinds(DeviceGroup& stage) const {
    for (const DeviceId device : stage.devices) {
      const int kind = model_.kindOf(device);
      if (stage.kinds.empty() || stage.kinds.back().first != kind) stage.kinds.emplace_back(kind, 0);
      ++stage.kinds.back().second;
    }
  }

  /// The original weighs layers by the profile of the type that was read first; here by the first of the order (mends B6).
  void useWeightsOf(const std::vector<int>& order) {
    const StageTable& table = tables_.of(order.front(), limits_.tps.front(), 1);
    weights_.clear();
    for (int layer = 0; layer < layers_; ++layer) weights_.push_back(table.time({unitsOf(layer, layer + 1), 0}).value);
    const double all = std::accumulate(weights_.begin(), weights_.end(), 0.0);
    for (double& weight : weights_) weight /= all;
  }

  [[nodiscard]] UnitRange unitsOf(int first, int last) const { return metis::unitsOf(model_.model(), first, last); }

  void visit(const std::shared_ptr<const Layout>& split, int microBatch) {
    const Layout& stages = *split;
    if (looksForClosest_ ? visitsLeft_-- <= 0 : options_.mayRuleOut && !bound_.mayBeWithin(stages, microBatch, worstKept_)) {
      ruledOut_ = true;
      return;
    }
    Degrees degrees;
    for (const DeviceGroup& stage : stages) {
      // More replicas than samples are never valid: the original halves its way down to here.
      const int size = static_cast<int>(stage.devices.size());
      const int dp = std::min(size, static_cast<int>(std::bit_floor(static_cast<unsigned>(microBatch))));
      degrees.emplace_back(dp, size / dp);
    }
    std::vector<double> headRoom;
    do {
      if (std::ranges::any_of(degrees, [&](const auto& degree) { return degree.second > limits_.tps.back(); })) return;
      if (!isValid(stages, degrees, microBatch)) continue;
      Costed one{.layout = split, .degrees = degrees, .microBatch = microBatch, .ends = {}, .shares = {}};
      share(one);
      if (!isExecutable(one)) continue;
      const auto attempts = partition(one, headRoom);
      if (!attempts) {
        headRoom.clear();
        continue;
      }
      one.estimate = estimateOf(one);
      found_.push_back(std::move(one));
      if (found_.size() >= 2 * most_) sortAndTrim();
      if (*attempts == 1) return;
    } while (advance(degrees, headRoom));
  }

  [[nodiscard]] double microBatchCount(int microBatch) const {
    return static_cast<double>((session_.problem().training.globalBatch + microBatch - 1) / microBatch);
  }

  [[nodiscard]] bool isValid(const Layout& stages, const Degrees& degrees, int microBatch) const {
    for (std::size_t s = 0; s < stages.size(); ++s) {
      const auto [dp, tp] = degrees[s];
      if (dp > microBatch || ceilDivide(microBatch, dp) > options_.mostSamples) return false;
      if (std::ranges::find(limits_.tps, tp) == limits_.tps.end()) return false;
      for (int r = 0; r < dp && tp > 1; ++r) {  // mends B8 and B19: one kind, one node
        const DeviceId first = stages[s].first(r, tp);
        for (int rank = 1; rank < tp; ++rank) {
          const DeviceId device = stages[s].devices[static_cast<std::size_t>(r * tp + rank)];
          if (device.node != first.node || model_.kindOf(device) != model_.kindOf(first)) return false;
        }
      }
    }
    return true;
  }

  /// What runs here may have no replicas inside a stage.
  [[nodiscard]] bool isExecutable(const Costed& one) const {
    return one.isApart() || std::ranges::all_of(one.degrees, [&](const auto& degree) { return degree.first <= limits_.mostDp; });
  }

  /// Halves the dp of the stage with least head room that has any; without head rooms of the one with most dp.
  static bool advance(Degrees& degrees, const std::vector<double>& headRoom) {
    std::size_t next = degrees.size();
    double least = 0;
    for (std::size_t s = 0; s < degrees.size(); ++s) {
      if (degrees[s].first == 1) continue;
      const double key = headRoom.empty() ? 1.0 / degrees[s].first : headRoom[s];
      if (next < degrees.size() && key >= least) continue;
      next = s;
      least = key;
    }
    if (next == degrees.size()) return false;
    degrees[next] = {degrees[next].first / 2, 2 * degrees[next].second};
    return true;
  }

  [[nodiscard]] Seconds stageTime(const Costed& one, std::size_t s, int first, int last) const {
    Seconds slowest;
    const int tp = one.degrees[s].second;
    for (std::size_t r = 0; r < one.shares[s].size(); ++r) {
      if (one.shares[s][r] == 0) continue;
      const int kind = model_.kindOf(one.stages()[s].first(static_cast<int>(r), tp));
      slowest = std::max(slowest, tables_.of(kind, tp, one.shares[s][r]).time({unitsOf(first, last), 0}));
    }
    return slowest;
  }

  void share(Costed& one) const {
    std::vector<double> times;
    one.shares.reserve(one.stages().size());
    for (std::size_t s = 0; s < one.stages().size(); ++s) {
      const auto [dp, tp] = one.degrees[s];
      times.clear();
      for (int r = 0; r < dp; ++r)
        times.push_back(tables_.of(model_.kindOf(one.stages()[s].first(r, tp)), tp, 1).time({unitsOf(0, layers_), 0}).value);
      one.shares.push_back(splitSamples(one.microBatch, times));
    }
  }

  /// Most memory that a device of the stage needs, and what the same device has (mends B18).
  [[nodiscard]] std::pair<double, double> memoryOf(const Costed& one, std::size_t s, std::int64_t microBatches) const {
    const auto [dp, tp] = one.degrees[s];
    const LevelRange part{unitsOf(one.ends[s], one.ends[s + 1]), 0};
    const int inFlight = inFlightMicroBatches(s, one.stages().size(), microBatches);
    std::pair<double, double> fullest{0, 1};
    for (int r = 0; r < dp; ++r) {
      const int samples = std::max(1, one.shares[s][static_cast<std::size_t>(r)]);
      const StageTable& table = tables_.of(model_.kindOf(one.stages()[s].first(r, tp)), tp, samples);
      const MemoryUse use = table.memory({&part, 1}, inFlight, dp, one.stages().size() == 1);
      const auto needed = static_cast<double>(use.total().value), there = static_cast<double>(use.capacity.value);
      if (needed * fullest.second > fullest.first * there) fullest = {needed, there};
    }
    return fullest;
  }

  /// Fills the ends. Attempts that it took; none: it does not fit.
  std::optional<int> partition(Costed& one, std::vector<double>& headRoom) {
    std::vector<double> performance;
    performance.reserve(one.stages().size());
    for (std::size_t s = 0; s < one.stages().size(); ++s) performance.push_back(1.0 / stageTime(one, s, 0, layers_).value);
    const double all = std::accumulate(performance.begin(), performance.end(), 0.0);
    for (double& value : performance) value /= all;
    const std::int64_t microBatches = (session_.problem().training.globalBatch + one.microBatch - 1) / one.microBatch;
    std::vector<double> capacity, demand, room;
    for (int attempt = 1; attempt <= kMostPartitions; ++attempt) {
      one.ends = wholeLayers(performance);
      for (std::vector<double>* values : {&capacity, &demand, &room}) values->clear();
      for (std::size_t s = 0; s < one.stages().size(); ++s) {
        const auto [needed, there] = memoryOf(one, s, microBatches);
        demand.push_back(needed);
        capacity.push_back(there);
        room.push_back(there - needed);
      }
      if (std::ranges::all_of(room, [](double left) { return left >= 0; })) {
        headRoom = attempt == 1 ? std::vector<double>{} : std::move(room);
        return attempt;
      }
      double fullest = 0;
      for (std::size_t s = 0; s < room.size(); ++s) fullest = std::max(fullest, demand[s] / capacity[s]);
      if (fullest < closestDemand_) {
        closestDemand_ = fullest;
        closest_ = one;
      }
      const auto shifted = rebalance(performance, capacity, demand);
      if (!shifted) return std::nullopt;
      performance = *shifted;
    }
    return std::nullopt;
  }

  /// Every stage owns at least one layer and no layer is lost (mends B7): what nobody owns goes to the stages behind, and an
  /// empty stage takes a layer of the largest neighbour.
  [[nodiscard]] std::vector<int> wholeLayers(const std::vector<double>& performance) const {
    std::vector<int> counts = balanceLayers(weights_, performance);
    int lost = layers_ - std::accumulate(counts.begin(), counts.end(), 0);
    while (lost > 0) {
      // To the stage that has most performance for each layer.
      std::size_t best = 0;
      for (std::size_t s = 1; s < counts.size(); ++s) {
        if (performance[s] * (counts[best] + 1) > performance[best] * (counts[s] + 1)) best = s;
      }
      ++counts[best];
      --lost;
    }
    while (true) {
      const auto empty = std::ranges::find(counts, 0);
      if (empty == counts.end()) break;
      --*std::ranges::max_element(counts);
      ++*empty;
    }
    std::vector<int> ends = {0};
    for (const int count : counts) ends.push_back(ends.back() + count);
    return ends;
  }

  /// Section 5 with the links as drawn (mends B3, B12) and all stages (mends B1): execution, one gradient all-reduce inside the
  /// stages, one activation over each cut.
  [[nodiscard]] double estimateOf(const Costed& one) const {
    const Training& training = session_.problem().training;
    const double microBatches = microBatchCount(one.microBatch);
    Seconds sum, slowest, dpCost, ppCost;
    for (std::size_t s = 0; s < one.stages().size(); ++s) {
      const auto [dp, tp] = one.degrees[s];
      const Seconds time = stageTime(one, s, one.ends[s], one.ends[s + 1]);
      sum += time;
      slowest = std::max(slowest, time);
      const UnitRange units = unitsOf(one.ends[s], one.ends[s + 1]);
      if (dp > 1) {
        double perByte = 0;
        for (int r = 0; r < dp; ++r) {
          const DeviceId a = one.stages()[s].first(r, tp), b = one.stages()[s].first((r + 1) % dp, tp);
          perByte = std::max(perByte, 1.0 / model_.link(a, b).bandwidth.value);
        }
        const double bytes = static_cast<double>(storedIn(units)) / tp *
                             static_cast<double>(bytesOf(training.precision));
        dpCost = std::max(dpCost, Seconds{2.0 * (dp - 1) / dp * bytes * perByte});
      }
      if (s + 1 < one.stages().size()) {
        const double bytes = static_cast<double>(training.sequenceLength * model_.model().hidden * bytesOf(training.precision)) *
                             ceilDivide(one.microBatch, dp);
        const LinkSpec link = model_.link(one.stages()[s].devices.back(), one.stages()[s + 1].devices.front());
        ppCost += Seconds{bytes / link.bandwidth.value};
      }
    }
    return (sum + (microBatches - 1) * slowest + dpCost + ppCost).value;
  }

  /// To count them takes a look at every tensor.
  [[nodiscard]] std::int64_t storedIn(UnitRange units) const {
    std::int64_t& stored = stored_[static_cast<std::size_t>(units.first * (model_.model().unitCount() + 1) + units.last)];
    if (stored < 0) stored = storedParameters(model_.model(), units.first, units.last);
    return stored;
  }

  void sortAndTrim() {
    std::ranges::stable_sort(found_, {}, &Costed::estimate);
    if (found_.size() < most_) return;
    found_.resize(most_);
    worstKept_ = found_.back().estimate;
  }

  SearchSession& session_;
  const CostModel& model_;
  FairOptions options_;
  std::size_t most_;
  Limits limits_;
  mutable StageTables tables_;
  LayoutBound bound_;
  int layers_;
  mutable std::vector<std::int64_t> stored_;  // by first and last unit; < 0: not counted yet
  std::map<int, std::vector<DeviceId>> kinds_;  // devices of each kind
  std::vector<int> microBatches_;
  std::vector<double> weights_;   // of layers, for the order at hand
  bool ruledOut_ = false;         // some layout was left out because no strategy of it fits or is fast enough
  bool looksForClosest_ = false;  // nothing fits: what lacks least is to be named
  int visitsLeft_ = kMostVisitsForClosest;
  std::vector<Costed> found_;
  double worstKept_ = std::numeric_limits<double>::infinity();  // what is estimated slower cannot be kept
  std::optional<Costed> closest_;  // the one that lacks least memory, for the reason where nothing fits
  double closestDemand_ = std::numeric_limits<double>::infinity();  // of its fullest device, in units of what that has
};

}  // namespace

std::vector<FairPlan> searchFairly(SearchSession& session, const FairOptions& options, std::size_t most) {
  return FairSearch(session, options, most).run();
}

}  // namespace evenkeel::metis
