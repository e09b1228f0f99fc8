// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/optimal/optimal.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <set>

#include "core/cost/stage_time.h"
#include "core/search/eth/eth.h"
#include "core/search/eth/polish.h"
#include "core/search/optimal/assembly.h"
#include "core/search/optimal/sync_rates.h"
#include "core/search/remedy.h"
#include "core/search/session.h"
#include "core/search/uniform/uniform.h"

namespace evenkeel {
namespace optimal {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
/// Prices are good enough when the packing of the columns is as near to their bound.
constexpr double kPriceGap = 2e-3;
/// Searches for better prices, each with a tighter tolerance.
constexpr int kRounds = 4;
/// Sketches between two searches.
constexpr int kSketches = 4;
constexpr double kPackingTolerance = 5e-4;
/// Up to so many pipelines each is fitted into its devices.
constexpr double kFewPipelines = 8;
constexpr int kFitsARound = 12;
constexpr int kSwapRounds = 8;
/// Up to so many devices the other planners' plans are candidates too.
constexpr int kFewDevices = 64;
/// Plans of equal pipelines that are simulated, of each pool.
constexpr std::size_t kMostEqual = 6;
constexpr std::int64_t kMostPaths = 3000;

/// Samples of a replica for which the bound knows the exact time; beyond, classes that grow by an eighth.
constexpr std::int64_t kExactSamples = 8;

std::vector<std::pair<std::int64_t, std::int64_t>> sampleClasses(std::int64_t batch) {
  std::vector<std::pair<std::int64_t, std::int64_t>> classes;
  for (std::int64_t least = 1; least <= batch;) {
    const std::int64_t most = least < kExactSamples ? least : std::min(batch, least + least / 8);
    classes.emplace_back(least, most);
    least = most + 1;
  }
  return classes;
}

/// What a search for columns aims at.
enum class Aim {
  ClosedForm,  // of the pipelines alone
  Reported,    // with the gradient sync, about
};

/// Columns found for one aim, for state that is sharded over so many holders.
struct Pool {
  std::vector<Column> columns;
  std::set<std::tuple<std::vector<std::pair<std::size_t, int>>, int, std::int64_t>> known;  // (option, last unit), b, most M
};

class OptimalSearch {
 public:
  explicit OptimalSearch(SearchSession& session)
      : session_(session),
        model_(session.model()),
        limits_(limitsOf(session.problem())),
        batch_(session.problem().training.globalBatch),
        resources_(resourcesOf(model_, limits_.devices)) {
    for (const Resource& resource : resources_) {
      amounts_.push_back(resource.amount);
      if (resource.level == 1) kinds_.push_back(resource.kind);
    }
    for (const Node& node : model_.cluster().nodes) nodeMost_ = std::max(nodeMost_, static_cast<int>(node.devices.size()));
  }

  void run() {
    session_.phase("first plans");
    prices_ = firstPrices();
    chooseHolders();
    session_.phase("prices");
    for (int again = 0; again < 3 && !session_.stopped() && model_.training().zeroStage > 0; ++again) {
      const std::size_t pipelines = improve(Aim::ClosedForm, 1);
      const int next = static_cast<int>(std::bit_floor(static_cast<unsigned>(std::max<std::size_t>(1, pipelines))));
      if (next <= holders_) break;
      holders_ = next;
    }
    if (session_.stopped()) return;
    improve(Aim::ClosedForm, kRounds);
    proveClosedForm();
    session_.phase("bound");
    prove(0.02);
    session_.phase("sync");
    improve(Aim::Reported, kRounds - 1);
    if (deviceCount() <= kFewDevices) {
      session_.phase("heuristics");
      considerUniformGrid(session_);
      considerEth();
    }
    if (session_.stopped()) return;
    session_.phase("polish");
    polish(session_);
    if (deviceCount() <= kFewDevices && model_.cluster().nodes.size() > 1) {
      swapGroups();
      polish(session_);
    }
    session_.note("closed_form_ms", rounded(closedForm_ * 1e3));
    session_.note("closed_form_bound_ms", rounded(closedFormBound_ * 1e3));
    session_.note("closed_form_gap", closedFormBound_ > 0 ? rounded(1 - closedFormBound_ / closedForm_) : 1.0);
  }

 private:
  [[nodiscard]] int deviceCount() const { return static_cast<int>(limits_.devices.size()); }

  /// So that all resources cost 1 together.
  [[nodiscard]] std::vector<double> normalized(std::vector<double> prices) const {
    double sum = 0;
    for (std::size_t k = 0; k < amounts_.size(); ++k) sum += prices[k] * amounts_[k];
    for (double& price : prices) price /= sum;
    return prices;
  }

  [[nodiscard]] std::vector<double> firstPrices() const {
    std::vector<double> prices(resources_.size(), 0.0);
    for (std::size_t r = 0; r < resources_.size(); ++r) {
      if (resources_[r].level > 1) continue;
      const DeviceType& type = model_.typeOfKind(resources_[r].kind);
      prices[r] = type.speed * type.peak.at(model_.training().precision).value;
    }
    return normalized(std::move(prices));
  }

  [[nodiscard]] StageOptions& planOptions() { return planOptions(holders_); }
  [[nodiscard]] StageOptions& planOptions(int holders) {
    if (model_.training().zeroStage == 0) holders = 1;
    auto& options = planOptions_[holders];
    if (!options) {
      StageOptions::Space space{.purpose = Purpose::Plan,
                                .kinds = kinds_,
                                .tps = limits_.tps,
                                .samples = {},
                                .holders = holders,
                                .mayRecompute = limits_.recompute};
      for (const int samples : microBatchChoices(batch_)) space.samples.emplace_back(samples, samples);
      options = std::make_unique<StageOptions>(model_, std::move(space));
    }
    return *options;
  }

  [[nodiscard]] StageOptions& boundOptions() {
    if (!boundOptions_) {
      StageOptions::Space space{.purpose = Purpose::Bound,
                                .kinds = kinds_,
                                .tps = {},
                                .samples = sampleClasses(batch_),
                                .holders = deviceCount(),
                                .mayRecompute = true};
      const Model& m = model_.model();
      for (int tp = 1; tp <= nodeMost_; ++tp) {
        if (m.heads % tp == 0 && (m.kvHeads % tp == 0 || tp % m.kvHeads == 0) && m.ffn % tp == 0 && m.paddedVocab() % tp == 0)
          space.tps.push_back(tp);
      }
      boundOptions_ = std::make_unique<StageOptions>(model_, std::move(space));
    }
    return *boundOptions_;
  }

  [[nodiscard]] std::vector<double> ratesOf(Aim aim) const {
    if (aim == Aim::ClosedForm) return {};
    const int pipelines = std::max(2, static_cast<int>(session_.incumbent().size()));
    return syncRates(model_, Purpose::Plan, model_.cluster().nodes.size() == 1 ? Rings::InNode : Rings::BetweenNodes, pipelines);
  }

  void addColumn(Pool& pool, const PriceSearch& search, const Path& path, int microBatches) {
    const StageOptions& options = planOptions();
    Column column{.path = path, .dps = {}, .uses = std::vector<int>(resources_.size(), 0)};
    std::int64_t samples = 1;
    for (const PathStage& stage : path) samples = std::max(samples, options.options()[stage.option].samples);
    column.microBatch = static_cast<int>(samples);
    for (const PathStage& stage : path) {
      const StageOption& option = options.options()[stage.option];
      const auto dp = static_cast<int>((samples + option.samples - 1) / option.samples);
      if (dp > limits_.mostDp) return;
      column.dps.push_back(dp);
      for (std::size_t r = 0; r < resources_.size(); ++r) column.uses[r] += resources_[r].usedBy(option) * dp;
    }
    for (std::size_t k = 0; k < amounts_.size(); ++k) {
      if (column.uses[k] > 2 * amounts_[k]) return;
    }
    column.mostMicroBatches = static_cast<int>(path.size()) <= microBatches ? batch_ : microBatches;
    std::vector<std::pair<std::size_t, int>> key;
    for (const PathStage& stage : path) key.emplace_back(stage.option, stage.units.last);
    if (!pool.known.emplace(std::move(key), column.microBatch, column.mostMicroBatches).second) return;
    const PathTime time = timeOf(options, path, Measure::ClosedForm, microBatches);
    if (time.fill == kNever) return;
    column.fill = time.fill;
    column.pace = time.pace;
    column.sync = search.syncOf(path);
    pool.columns.push_back(std::move(column));
  }

  /// State is sharded over the pipelines, which depend on it: more holders, less memory, more pipelines.
  void chooseHolders() {
    for (int round = 0; round < 12 && !session_.stopped(); ++round) {
      PriceSearch search(planOptions(), resources_, Measure::ClosedForm, batch_, deviceCount(), {});
      Pool pool;
      const auto onPath = [&](const Path& path, int m) { addColumn(pool, search, path, m); };
      search.sketch({.prices = prices_}, onPath);
      std::optional<RelaxedTime> relaxed;
      for (int again = 0; again < kSketches && !session_.stopped(); ++again) {
        relaxed = leastRelaxedTime(pool.columns, amounts_, batch_);
        if (!relaxed) break;
        if (again == 0 && session_.incumbent().empty()) static_cast<void>(plansFrom(pool, relaxed->time));
        search.sketch(between({.prices = prices_}, relaxed->packing, amounts_, 0.5), onPath);
      }
      int pipelines = 2 * holders_;
      if (relaxed) {
        static_cast<void>(plansFrom(pool, relaxed->time));
        double sum = 0;
        for (const auto& [column, amount] : relaxed->packing.fractions) sum += amount;
        pipelines = static_cast<int>(sum);
      }
      const int next = static_cast<int>(std::bit_floor(static_cast<unsigned>(std::clamp(pipelines, 1, deviceCount()))));
      trace("holders %d -> %d pipelines, incumbent %.5f\n", holders_, pipelines, session_.incumbentTime().value);
      if (model_.training().zeroStage == 0 || next <= holders_) break;
      holders_ = next;
    }
  }

  /// Prices part of the way from `from` to those that the packing asks: the latter alone jump.
  [[nodiscard]] static Ask between(const Ask& from, const Relaxed& packing, std::span<const int> devices, double part) {
    double sum = 0;
    for (std::size_t r = 0; r < devices.size(); ++r) sum += packing.prices[r] * devices[r];
    Ask ask = from;
    for (std::size_t k = 0; k < ask.prices.size(); ++k) ask.prices[k] += part * (packing.prices[k] / sum - from.prices[k]);
    return ask;
  }

  /// With few pipelines fractions of columns say little: pipelines for equal parts of the devices, and for what columns leave over.
  std::size_t fitFew(PriceSearch& search, Pool& pool, Aim aim) {
    const auto relaxed = leastRelaxedTime(pool.columns, amounts_, batch_);
    double pipelines = 1;
    std::set<int> microBatches = {1, 2};
    if (relaxed) {
      pipelines = 0;
      for (const auto& [column, amount] : relaxed->packing.fractions) {
        pipelines += amount;
        microBatches.insert(pool.columns[column].microBatch);
      }
    }
    if (pipelines > kFewPipelines) return 0;
    std::size_t made = 0;
    const auto onPath = [&](const Path& path, int m) { addColumn(pool, search, path, m); };
    const auto stopped = [this] { return session_.stopped(); };
    const auto fitAll = [&](const std::vector<int>& room, std::int64_t samples) {
      for (const int microBatch : microBatches) {
        if (microBatch <= samples) search.fit(room, samples, microBatch, limits_.mostDp, stopped, onPath);
      }
    };
    for (int parts = 1; parts <= std::max(2, static_cast<int>(2 * pipelines)) && parts <= batch_; ++parts) {
      std::vector<int> room = amounts_;
      for (int& count : room) count /= parts;
      fitAll(room, (batch_ + parts - 1) / parts);
      if (model_.training().zeroStage == 0 || parts <= holders_) continue;
      // So many pipelines shard their state further.
      const int before = std::exchange(holders_, parts);
      PriceSearch further(planOptions(), resources_, Measure::ClosedForm, batch_, deviceCount(), ratesOf(aim));
      for (const int microBatch : microBatches) {
        if (microBatch <= batch_ / parts) further.fit(room, (batch_ + parts - 1) / parts, microBatch, limits_.mostDp, stopped, onPath);
      }
      holders_ = before;
    }
    trace("fitted parts: columns %zu\n", pool.columns.size());
    // The rest beside the columns that train most for their devices.
    for (int round = 0; round < 3; ++round) {
      const auto now = leastRelaxedTime(pool.columns, amounts_, batch_);
      if (!now) return 0;
      const double time = std::isfinite(closedForm_) ? std::max(now->time, 0.99 * closedForm_) : 1.05 * now->time;
      std::vector<std::pair<double, std::size_t>> ranked;
      for (std::size_t j = 0; j < pool.columns.size(); ++j) {
        double price = 0;
        for (std::size_t r = 0; r < amounts_.size(); ++r) price += now->packing.prices[r] * pool.columns[j].uses[r];
        ranked.emplace_back(price - static_cast<double>(pool.columns[j].samplesIn(time)), j);
      }
      std::ranges::sort(ranked);
      int fits = 0;
      std::set<std::vector<int>> seen;
      for (const auto& [cost, j] : ranked) {
        if (fits >= kFitsARound || stopped()) break;
        const Column column = pool.columns[j];
        std::vector<int> room = amounts_;
        std::int64_t samples = batch_;
        while (true) {
          bool isRoom = true;
          for (std::size_t k = 0; k < room.size(); ++k) isRoom = isRoom && (room[k] -= column.uses[k]) >= 0;
          samples -= column.samplesIn(time);
          if (!isRoom || samples <= 0) break;
          if (!seen.insert(room).second) continue;
          fitAll(room, samples);
          ++fits;
        }
      }
      // And beside the whole part of the relaxed packing, with or without one more of each.
      for (std::size_t less = 0; less <= now->packing.fractions.size() && !stopped(); ++less) {
        std::vector<int> room = amounts_;
        std::int64_t samples = batch_;
        for (std::size_t f = 0; f < now->packing.fractions.size(); ++f) {
          const auto& [j, amount] = now->packing.fractions[f];
          const int count = static_cast<int>(std::floor(amount + 1e-6)) - (f + 1 == less ? 1 : 0);
          for (std::size_t k = 0; k < room.size(); ++k) room[k] -= std::max(0, count) * pool.columns[j].uses[k];
          samples -= std::max(0, count) * pool.columns[j].samplesIn(time);
        }
        for (int parts = 1; parts <= 3 && samples >= parts; ++parts) {
          std::vector<int> part = room;
          for (int& count : part) count /= parts;
          fitAll(part, (samples + parts - 1) / parts);
        }
      }
      trace("fitted rest: columns %zu\n", pool.columns.size());
      const double before = closedForm_;
      made = plansFrom(pool, now->time);
      trace("  incumbent %.5f cf %.5f\n", session_.incumbentTime().value, closedForm_);
      if (closedForm_ >= before * (1 - 1e-3)) break;
    }
    return made;
  }

  /// Prices and columns in turn: the columns' packing prices the devices, the prices find columns.
  /// How many pipelines the best packing has.
  std::size_t improve(Aim aim, int mostRounds) {
    PriceSearch search(planOptions(), resources_, Measure::ClosedForm, batch_, deviceCount(), ratesOf(aim));
    Pool pool;
    const auto onPath = [&](const Path& path, int m) { addColumn(pool, search, path, m); };
    Ask best{.prices = prices_}, ask = best;
    search.sketch(ask, onPath);
    double bestBound = 0, packedAt = kNever, step = 0.5;
    std::size_t pipelines = 0;
    for (int round = 0; round < mostRounds && !session_.stopped(); ++round) {
      const PriceSearch::Limits limits{.tolerance = std::max(1e-3, 0.01 / (1 << round)),
                                       .enough = kNever,
                                       .atLeast = bestBound,
                                       .mostPaths = kMostPaths,
                                       .stopped = [this] { return session_.stopped(); }};
      const auto found = search.run(ask, limits, onPath);
      trace("aim %d round %d: bound %.5f reached %.5f paths %ld columns %zu\n", static_cast<int>(aim), round, found.bound,
            found.reached, static_cast<long>(found.paths), pool.columns.size());
      const bool isBetter = found.bound > bestBound;
      if (isBetter) {
        step = found.bound > bestBound * (1 + 3e-4) ? 0.5 : step * 0.7;
        bestBound = found.bound;
        best = ask;
      } else {
        step *= 0.5;
      }
      auto relaxed = leastRelaxedTime(pool.columns, amounts_, batch_);
      for (int again = 0; relaxed && again < kSketches && !session_.stopped(); ++again) {
        const std::size_t before = pool.columns.size();
        search.sketch(between(best, relaxed->packing, amounts_, again % 2 == 0 ? 1.0 : step), onPath);
        if (pool.columns.size() > before) relaxed = leastRelaxedTime(pool.columns, amounts_, batch_);
      }
      if (!relaxed) break;
      const bool isDone = bestBound >= relaxed->time * (1 - kPriceGap) || step < 0.02;
      if (relaxed->time < packedAt * (1 - 2e-3) || isDone || round + 1 == mostRounds) {
        packedAt = relaxed->time;
        if (const std::size_t made = plansFrom(pool, relaxed->time); made > 0) pipelines = made;
      }
      trace("  relaxed %.5f best bound %.5f step %.3f incumbent %.5f cf %.5f\n", relaxed->time, bestBound, step,
            session_.incumbentTime().value, closedForm_);
      if (isDone) break;
      ask = between(best, relaxed->packing, amounts_, step);
    }
    prices_ = normalized(best.prices);
    if (mostRounds == 1) return pipelines;
    if (const std::size_t made = fitFew(search, pool, aim); made > 0) pipelines = made;
    return pipelines;
  }

  template <class... Args>
  void trace(const char* format, Args... args) {
    static const bool on = std::getenv("OPT_TRACE") != nullptr;
    if (!on) return;
    fprintf(stderr, "[%.0f ms cpu] ", 1e3 * static_cast<double>(clock()) / CLOCKS_PER_SEC);
    fprintf(stderr, format, args...);
  }

  /// How many pipelines the best packing has; 0: none found.
  std::size_t plansFrom(Pool& pool, double least) {
    std::optional<Packed> packed;
    double failed = least;
    for (const double more : {0.0, 0.001, 0.003, 0.006, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.35, 0.6, 1.0, 2.0}) {
      packed = packWhole(pool.columns, amounts_, batch_, least * (1 + more));
      if (packed || session_.stopped()) break;
      failed = least * (1 + more);
    }
    while (packed && packed->time - failed > kPackingTolerance * packed->time && !session_.stopped()) {
      const double middle = (packed->time + failed) / 2;
      if (auto better = packWhole(pool.columns, amounts_, batch_, middle)) packed = std::move(better);
      else failed = middle;
    }
    std::vector<Packed> all;
    if (packed) all.push_back(*packed);
    for (Packed& copies : copiesOfOne(pool)) all.push_back(std::move(copies));
    std::vector<std::vector<Pipeline>> candidates;
    for (const Packed& one : all) addPlans(pool, one, candidates);
    session_.consider(
        candidates.size(), [&](std::size_t i) { return candidates[i]; }, "optimal: packed columns");
    if (!packed) return 0;
    std::size_t pipelines = 0;
    for (const auto& [column, copies] : packed->copies) pipelines += static_cast<std::size_t>(copies);
    return pipelines;
  }

  /// Equal pipelines, one or as many as the devices make: their rings hold one stage each, so sync is cheap. The best few by the
  /// closed form with sync between nodes.
  std::vector<Packed> copiesOfOne(const Pool& pool) {
    const StageOptions& options = planOptions();
    const std::vector<double> rates = syncRates(
        model_, Purpose::Plan, model_.cluster().nodes.size() == 1 ? Rings::InNode : Rings::BetweenNodes, kMaxDevices);
    std::vector<Packed> best;
    for (std::size_t j = 0; j < pool.columns.size(); ++j) {
      const Column& column = pool.columns[j];
      int most = static_cast<int>(std::min<std::int64_t>(deviceCount(), batch_));
      for (std::size_t k = 0; k < amounts_.size(); ++k) {
        if (column.uses[k] > 0) most = std::min(most, amounts_[k] / column.uses[k]);
      }
      for (const int copies : {1, most}) {
        if (copies < 1 || copies > most) continue;
        const std::int64_t each = std::int64_t{copies} * column.microBatch;
        const std::int64_t microBatches = (batch_ + each - 1) / each;
        if (microBatches > column.mostMicroBatches) continue;
        double sync = 0;
        for (std::size_t s = 0; s < column.path.size(); ++s) {
          const PathStage& stage = column.path[s];
          const double rate = rates[static_cast<std::size_t>(options.options()[stage.option].kind)];
          const double part = 1.0 - 1.0 / (copies * column.dps[s]);
          sync = std::max(sync, part * rate * static_cast<double>(options.parameters(stage.option, stage.units)));
        }
        best.push_back({column.fill + static_cast<double>(microBatches - 1) * column.pace + sync, {{j, copies}}});
        if (most == 1) break;
      }
    }
    std::ranges::stable_sort(best, {}, &Packed::time);
    best.resize(std::min(best.size(), deviceCount() <= kFewDevices ? 4 * kMostEqual : kMostEqual));
    return best;
  }

  void addPlans(const Pool& pool, const Packed& packed, std::vector<std::vector<Pipeline>>& candidates) {
    std::vector<PathTime> times;
    for (const auto& [column, copies] : packed.copies) times.push_back({pool.columns[column].fill, pool.columns[column].pace});
    const std::vector<Load> loads = balanced(pool.columns, packed, times, batch_);
    if (loads.empty()) return;
    const auto placedAs = [&](const std::vector<Load>& as, Neighbours neighbours) {
      return placed(model_, planOptions(static_cast<int>(as.size())), limits_, pool.columns, as, neighbours);
    };
    for (const Neighbours neighbours : {Neighbours::Stages, Neighbours::Replicas}) {
      if (neighbours == Neighbours::Replicas && loads.size() == 1) continue;
      candidates.push_back(placedAs(loads, neighbours));
      const std::vector<Pipeline>& pipelines = candidates.back();
      if (pipelines.empty()) continue;
      noteClosedForm(pipelines);
      // Once more, balanced by what the simulation says of them.
      std::vector<PathTime> simulated = times;
      for (std::size_t i = 0; i < packed.copies.size(); ++i) {
        for (std::size_t p = 0; p < loads.size(); ++p) {
          if (loads[p].column != packed.copies[i].first) continue;
          simulated[i] = simulatedTime(model_, pipelines[p]);
          break;
        }
      }
      const std::vector<Load> again = balanced(pool.columns, packed, simulated, batch_);
      if (!again.empty() && packed.copies.size() > 1) candidates.push_back(placedAs(again, neighbours));
    }
  }

  /// The paper's planner as one more heuristic, so that it is never the better one.
  void considerEth() {
    struct Silent final : SearchObserver {
    } nobody;
    const SearchTask task{session_.problem(), &model_.profile(), session_.budgetLeft(), {}};
    const auto plan = ethPlanner().plan(task, nobody, session_.stopToken());
    if (!plan) return;
    session_.consider(
        1, [&](std::size_t) { return plan->pipelines; }, "optimal: plan of eth");
    noteClosedForm(plan->pipelines);
  }

  /// Unlike nodes: exchanges the devices of two tp groups, or those of one for idle ones, as long as the reported number falls.
  void swapGroups() {
    struct Group {
      std::size_t pipeline, stage;
      int replica;
    };
    const auto devicesOf = [](std::vector<Pipeline>& of, const Group& group) {
      Stage& stage = of[group.pipeline].stages[group.stage];
      return std::span(stage.devices).subspan(static_cast<std::size_t>(group.replica * stage.tp), static_cast<std::size_t>(stage.tp));
    };
    for (int round = 0; round < kSwapRounds && !session_.stopped() && !session_.incumbent().empty(); ++round) {
      std::vector<Pipeline> now = session_.incumbent();
      const Seconds before = session_.incumbentTime();
      std::vector<Group> groups;
      std::map<std::pair<int, int>, std::vector<DeviceId>> idle;  // by (kind, node)
      for (const DeviceId device : limits_.devices) idle[{model_.kindOf(device), device.node}].push_back(device);
      for (std::size_t p = 0; p < now.size(); ++p) {
        for (std::size_t s = 0; s < now[p].stages.size(); ++s) {
          for (int r = 0; r < now[p].stages[s].dp; ++r) groups.push_back({p, s, r});
          for (const DeviceId device : now[p].stages[s].devices) std::erase(idle[{model_.kindOf(device), device.node}], device);
        }
      }
      std::vector<std::pair<Group, Group>> swaps;
      std::vector<std::pair<Group, std::vector<DeviceId>>> moves;
      for (std::size_t a = 0; a < groups.size(); ++a) {
        const auto first = devicesOf(now, groups[a]);
        for (std::size_t b = a + 1; b < groups.size(); ++b) {
          const auto second = devicesOf(now, groups[b]);
          if (first.size() == second.size() && first[0].node != second[0].node && model_.kindOf(first[0]) == model_.kindOf(second[0]))
            swaps.emplace_back(groups[a], groups[b]);
        }
        for (const auto& [where, devices] : idle) {
          if (where.first != model_.kindOf(first[0]) || where.second == first[0].node || devices.size() < first.size()) continue;
          moves.emplace_back(groups[a], std::vector<DeviceId>(devices.begin(), devices.begin() + std::ssize(first)));
        }
      }
      session_.consider(
          swaps.size() + moves.size(),
          [&](std::size_t i) {
            std::vector<Pipeline> changed = now;
            if (i < swaps.size()) {
              std::ranges::swap_ranges(devicesOf(changed, swaps[i].first), devicesOf(changed, swaps[i].second));
            } else {
              const auto& [group, devices] = moves[i - swaps.size()];
              std::ranges::copy(devices, devicesOf(changed, group).begin());
            }
            return changed;
          },
          "optimal: other devices");
      if (session_.incumbentTime() >= before) return;
    }
  }

  void noteClosedForm(const std::vector<Pipeline>& pipelines) {
    if (worstLack(model_, pipelines)) return;
    Seconds slowest;
    for (const Pipeline& pipeline : pipelines) slowest = std::max(slowest, closedForm(pipelineTimes(model_, pipeline)));
    closedForm_ = std::min(closedForm_, slowest.value);
  }

  void proveClosedForm() {
    // Within what is planned: these tp and micro-batches; state sharded as far as it ever could be.
    StageOptions::Space space{.purpose = Purpose::Bound,
                              .kinds = kinds_,
                              .tps = limits_.tps,
                              .samples = {},
                              .holders = model_.training().zeroStage == 0 ? 1 : deviceCount(),
                              .mayRecompute = true};
    for (const int samples : microBatchChoices(batch_)) space.samples.emplace_back(samples, samples);
    const StageOptions options(model_, std::move(space));
    PriceSearch search(options, resources_, Measure::ClosedForm, batch_, deviceCount(), {});
    const PriceSearch::Limits limits{.tolerance = 1e-3,
                                     .enough = closedForm_,
                                     .atLeast = 0,
                                     .mostPaths = kMostPaths,
                                     .stopped = [this] { return session_.stopped(); }};
    const auto found = search.run({.prices = prices_}, limits, {});
    closedFormBound_ = std::max(closedFormBound_, found.bound);
    trace("closed form: bound %.5f reached %.5f paths %ld, have %.5f: gap %.3f %%\n", found.bound, found.reached,
          static_cast<long>(found.paths), closedForm_, 100 * (1 - closedFormBound_ / closedForm_));
  }

  /// No plan is reported faster: least time of a schedule that does what the prices ask, and the optimizer.
  void prove(double tolerance) {
    StageOptions& options = boundOptions();
    PriceSearch search(options, resources_, Measure::Schedule, batch_, deviceCount(),
                       syncRates(model_, Purpose::Bound, Rings::InNode, 1));
    const PriceSearch::Limits limits{.tolerance = tolerance,
                                     .enough = session_.incumbentTime().value,
                                     .atLeast = session_.bound().value,
                                     .mostPaths = kMostPaths,
                                     .stopped = [this] { return session_.stopped(); }};
    const auto found = search.run({.prices = prices_, .ragged = true, .partsShrink = partsShrink(options)}, limits, {});
    if (found.bound < kNever) session_.raiseBound({found.bound});
    trace("reported: bound %.5f reached %.5f paths %ld incumbent %.5f\n", found.bound, found.reached,
          static_cast<long>(found.paths), session_.incumbentTime().value);
  }

  /// Twice the samples take at most twice the time, wherever it can be asked.
  [[nodiscard]] static bool partsShrink(const StageOptions& options) {
    const std::vector<StageOption>& all = options.options();
    for (std::size_t o = 1; o < all.size(); ++o) {
      if (all[o].kind != all[o - 1].kind || all[o].tp != all[o - 1].tp) continue;
      for (const UnitRange units : {UnitRange{0, 1}, UnitRange{1, 2}, UnitRange{2, 3}, UnitRange{options.unitCount() - 1, options.unitCount()}}) {
        const auto perSample = [&](std::size_t option) { return options.work(option, units) / static_cast<double>(all[option].samples); };
        if (perSample(o) > perSample(o - 1) * (1 + 1e-9)) return false;
      }
    }
    return true;
  }

  SearchSession& session_;
  const CostModel& model_;
  Limits limits_;
  std::int64_t batch_;
  std::vector<Resource> resources_;
  std::vector<int> amounts_;  // of the resources
  std::vector<int> kinds_;    // that have devices
  int nodeMost_ = 1;
  std::vector<double> prices_;
  int holders_ = 1;
  std::map<int, std::unique_ptr<StageOptions>> planOptions_;  // by holders
  std::unique_ptr<StageOptions> boundOptions_;
  double closedForm_ = kNever, closedFormBound_ = 0;
};

Result<Plan> plan(const SearchTask& task, SearchObserver& observer, std::stop_token stop) {
  if (auto checked = checkTask("optimal", {}, task); !checked) return checked.error();
  SearchSession session("optimal", task, observer, stop);
  OptimalSearch(session).run();
  return withRemedy(session.finish("columns exhausted"), task, stop);
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
