// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/optimal/optimal.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "core/cost/stage_time.h"
#include "core/search/optimal/assembly.h"
#include "core/search/remedy.h"
#include "core/search/session.h"

namespace evenkeel {
namespace optimal {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
/// Gap of the closed form at which the search ends by itself.
constexpr double kClosedFormGap = 2e-3;
constexpr int kMostRounds = 12, kMostStale = 2;
constexpr double kPackingTolerance = 5e-4;
constexpr std::int64_t kMostPaths = 20000;
constexpr std::size_t kMostColumns = 4000;

/// Samples of a replica for which the bound knows the exact time; beyond, classes that grow by an eighth.
constexpr std::int64_t kExactSamples = 16;

std::vector<std::pair<std::int64_t, std::int64_t>> sampleClasses(std::int64_t batch) {
  std::vector<std::pair<std::int64_t, std::int64_t>> classes;
  for (std::int64_t least = 1; least <= batch;) {
    const std::int64_t most = least < kExactSamples ? least : std::min(batch, least + least / 16);
    classes.emplace_back(least, most);
    least = most + 1;
  }
  return classes;
}

/// Pipelines that hold their state sharded over at least so many holders, and the columns found for them.
struct PlanSpace {
  PlanSpace(const CostModel& model, StageOptions::Space space, std::int64_t batch, int mostStages)
      : options(model, std::move(space)), search(options, Measure::ClosedForm, false, batch, mostStages) {}
  StageOptions options;
  PriceSearch search;
  std::vector<Column> columns;
  std::set<std::tuple<std::vector<std::pair<std::size_t, int>>, int, std::int64_t>> known;  // (option, last unit), b, cap
};

class OptimalSearch {
 public:
  explicit OptimalSearch(SearchSession& session)
      : session_(session),
        model_(session.model()),
        limits_(limitsOf(session.problem())),
        batch_(session.problem().training.globalBatch),
        devices_(static_cast<std::size_t>(model_.kindCount()), 0) {
    for (const DeviceId device : limits_.devices) ++devices_[static_cast<std::size_t>(model_.kindOf(device))];
    for (int kind = 0; kind < model_.kindCount(); ++kind) {
      if (devices_[static_cast<std::size_t>(kind)] > 0) kinds_.push_back(kind);
    }
  }

  void run() {
    session_.phase("prices");
    std::vector<double> prices = firstPrices();
    int holders = 1;
    while (!session_.stopped()) {
      prices = searchWith(holders, prices);
      const int pipelines = static_cast<int>(session_.incumbent().size());
      const int next = static_cast<int>(std::bit_floor(static_cast<unsigned>(std::max(1, pipelines))));
      if (model_.training().zeroStage == 0 || next <= holders) break;
      holders = next;
    }
  }

 private:
  [[nodiscard]] int deviceCount() const { return std::accumulate(devices_.begin(), devices_.end(), 0); }

  [[nodiscard]] std::vector<double> normalized(std::vector<double> prices) const {
    double sum = 0;
    for (std::size_t k = 0; k < prices.size(); ++k) sum += prices[k] * devices_[k];
    for (double& price : prices) price /= sum;
    return prices;
  }

  [[nodiscard]] std::vector<double> firstPrices() const {
    std::vector<double> prices(devices_.size(), 0.0);
    for (const int kind : kinds_) {
      const DeviceType& type = model_.typeOfKind(kind);
      prices[static_cast<std::size_t>(kind)] = type.speed * type.peak.at(model_.training().precision).value;
    }
    return normalized(std::move(prices));
  }

  [[nodiscard]] StageOptions::Space planSpace(int holders) const {
    StageOptions::Space space{.purpose = Purpose::Plan,
                              .kinds = kinds_,
                              .tps = limits_.tps,
                              .samples = {},
                              .holders = holders,
                              .mayRecompute = limits_.recompute};
    for (const int samples : microBatchChoices(batch_)) space.samples.emplace_back(samples, samples);
    return space;
  }

  [[nodiscard]] StageOptions::Space boundSpace() const {
    StageOptions::Space space{.purpose = Purpose::Bound,
                              .kinds = kinds_,
                              .tps = {},
                              .samples = sampleClasses(batch_),
                              .holders = deviceCount(),
                              .mayRecompute = true};
    int mostTp = 1;
    for (const Node& node : model_.cluster().nodes) mostTp = std::max(mostTp, static_cast<int>(node.devices.size()));
    const Model& m = model_.model();
    for (int tp = 1; tp <= mostTp; ++tp) {
      if (m.heads % tp == 0 && (m.kvHeads % tp == 0 || tp % m.kvHeads == 0) && m.ffn % tp == 0 && m.paddedVocab() % tp == 0)
        space.tps.push_back(tp);
    }
    return space;
  }

  void addColumn(PlanSpace& space, const Path& path, int microBatches) {
    Column column{.path = path, .dps = {}, .devices = std::vector<int>(devices_.size(), 0)};
    std::int64_t samples = 1;
    for (const PathStage& stage : path) samples = std::max(samples, space.options.options()[stage.option].samples);
    column.microBatch = static_cast<int>(samples);
    for (const PathStage& stage : path) {
      const StageOption& option = space.options.options()[stage.option];
      const auto dp = static_cast<int>((samples + option.samples - 1) / option.samples);
      if (dp > limits_.mostDp) return;
      column.dps.push_back(dp);
      column.devices[static_cast<std::size_t>(option.kind)] += option.tp * dp;
    }
    for (std::size_t k = 0; k < devices_.size(); ++k) {
      if (column.devices[k] > 2 * devices_[k]) return;
    }
    column.mostMicroBatches = static_cast<int>(path.size()) <= microBatches ? batch_ : microBatches;
    std::vector<std::pair<std::size_t, int>> key;
    for (const PathStage& stage : path) key.emplace_back(stage.option, stage.units.last);
    if (!space.known.emplace(std::move(key), column.microBatch, column.mostMicroBatches).second) return;
    const PathTime time = timeOf(space.options, path, Measure::ClosedForm, microBatches);
    if (time.fill == kNever) return;
    column.fill = time.fill;
    column.pace = time.pace;
    space.columns.push_back(std::move(column));
  }

  /// Prices and columns in turn: the columns' packing prices the devices, the prices find columns.
  std::vector<double> searchWith(int holders, std::vector<double> prices) {
    PlanSpace space(model_, planSpace(holders), batch_, deviceCount());
    const auto onPath = [&](const Path& path, int m) { addColumn(space, path, m); };
    space.search.sketch(prices, onPath);
    std::vector<double> bestPrices = prices;
    double bestBound = 0;
    int stale = 0;
    for (int round = 0; round < kMostRounds && !session_.stopped(); ++round) {
      const auto relaxed = leastRelaxedTime(space.columns, devices_, batch_);
      if (!relaxed) break;
      plansFrom(space, relaxed->time);
      trace("  relaxed %.5f best bound %.5f incumbent %.5f cf %.5f\n", relaxed->time, bestBound, session_.incumbentTime().value,
            closedForm_);
      if (bestBound >= relaxed->time * (1 - kClosedFormGap) || stale >= kMostStale) break;
      const std::vector<double> asked = normalized(relaxed->packing.prices);
      for (std::size_t k = 0; k < prices.size(); ++k) prices[k] = 0.5 * (asked[k] + bestPrices[k]);
      const PriceSearch::Limits limits{.tolerance = std::max(1e-3, 0.02 / (1 << round)),
                                       .enough = kNever,
                                       .atLeast = bestBound,
                                       .mostPaths = kMostPaths,
                                       .stopped = [this] { return session_.stopped(); }};
      const auto found = space.search.run(prices, limits, onPath);
      trace("h %d round %d: bound %.5f reached %.5f nodes %ld columns %zu\n", holders, round, found.bound, found.reached,
            static_cast<long>(found.nodes), space.columns.size());
      stale = found.bound > bestBound * (1 + 2e-4) ? 0 : stale + 1;
      if (found.bound > bestBound) {
        bestBound = found.bound;
        bestPrices = prices;
      }
    }
    return bestPrices;
  }

  template <class... Args>
  void trace(const char* format, Args... args) {
    static const bool on = std::getenv("OPT_TRACE") != nullptr;
    if (!on) return;
    fprintf(stderr, "[%.0f ms cpu] ", 1e3 * static_cast<double>(clock()) / CLOCKS_PER_SEC);
    fprintf(stderr, format, args...);
  }

  void plansFrom(PlanSpace& space, double least) {
    std::optional<Packed> packed;
    double failed = least;
    for (const double more : {0.0, 0.001, 0.003, 0.006, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.35, 0.6, 1.0, 2.0}) {
      packed = packWhole(space.columns, devices_, batch_, least * (1 + more));
      if (packed || session_.stopped()) break;
      failed = least * (1 + more);
    }
    while (packed && packed->time - failed > kPackingTolerance * packed->time && !session_.stopped()) {
      const double middle = (packed->time + failed) / 2;
      if (auto better = packWhole(space.columns, devices_, batch_, middle)) packed = std::move(better);
      else failed = middle;
    }
    if (!packed) return;
    std::vector<PathTime> times;
    for (const auto& [column, copies] : packed->copies) times.push_back({space.columns[column].fill, space.columns[column].pace});
    const std::vector<Load> loads = balanced(space.columns, *packed, times, batch_);
    if (loads.empty()) return;
    const std::vector<Pipeline> pipelines = placed(model_, space.options, limits_, space.columns, loads);
    if (pipelines.empty()) return;
    noteClosedForm(pipelines);
    // Once more, balanced by what the simulation says of them.
    for (std::size_t i = 0; i < packed->copies.size(); ++i) {
      for (std::size_t p = 0; p < loads.size(); ++p) {
        if (loads[p].column != packed->copies[i].first) continue;
        times[i] = simulatedTime(model_, pipelines[p]);
        break;
      }
    }
    const std::vector<Load> simulated = balanced(space.columns, *packed, times, batch_);
    std::vector<std::vector<Pipeline>> candidates = {pipelines};
    if (!simulated.empty()) candidates.push_back(placed(model_, space.options, limits_, space.columns, simulated));
    session_.consider(
        candidates.size(), [&](std::size_t i) { return candidates[i]; }, "optimal: packed columns");
  }

  void noteClosedForm(const std::vector<Pipeline>& pipelines) {
    if (worstLack(model_, pipelines)) return;
    Seconds slowest;
    for (const Pipeline& pipeline : pipelines) slowest = std::max(slowest, evenkeel::closedForm(pipelineTimes(model_, pipeline)));
    closedForm_ = std::min(closedForm_, slowest.value);
  }

  SearchSession& session_;
  const CostModel& model_;
  Limits limits_;
  std::int64_t batch_;
  std::vector<int> devices_;  // by kind
  std::vector<int> kinds_;    // that have devices
  double closedForm_ = kNever;
};

Result<Plan> plan(const SearchTask& task, SearchObserver& observer, std::stop_token stop) {
  if (auto checked = checkTask("optimal", {}, task); !checked) return checked.error();
  SearchSession session("optimal", task, observer, stop);
  OptimalSearch(session).run();
  return withRemedy(session.finish("space exhausted"), task, stop);
}

}  // namespace
}  // namespace optimal

Planner optimalPlanner() {
  return {.name = "optimal",
          .summary = "ours: priced pipelines packed into the cluster, with a bound on how far from the best the plan can be",
          .options = {},
          .deviations = {"micro-batches within 1, 2, 3, 4, 6, 8, 12, ... samples a replica", "tp within powers of two"},
          .plan = optimal::plan};
}

}  // namespace evenkeel
