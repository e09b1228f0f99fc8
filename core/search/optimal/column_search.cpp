// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/optimal/column_search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace evenkeel::optimal {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
/// Prices are good enough when the packing of the columns is as near to their bound.
constexpr double kPriceGap = 2e-3;
/// A better bound or packing is worth another full step, or another packing of whole columns, from here on.
constexpr double kNoticeable = 3e-4, kWorthPacking = 2e-3;
constexpr double kLeastStep = 0.02;
/// Sketches between two searches.
constexpr int kSketches = 4;
constexpr int kMostHolderRounds = 12;
constexpr std::int64_t kMostPaths = 3000;
/// Up to so many pipelines each is fitted into its devices.
constexpr double kFewPipelines = 8;
constexpr int kMostTinyMicroBatch = 8;
constexpr int kFitRounds = 3, kFitsARound = 12, kMostParts = 3;

/// Prices part of the way from `from` to those that the packing asks: the latter alone jump.
Ask between(const Ask& from, const Relaxed& packing, std::span<const int> amounts, double part) {
  double sum = 0;
  for (std::size_t r = 0; r < amounts.size(); ++r) sum += packing.prices[r] * amounts[r];
  Ask ask = from;
  for (std::size_t r = 0; r < ask.prices.size(); ++r) ask.prices[r] += part * (packing.prices[r] / sum - from.prices[r]);
  return ask;
}

/// A power of two, so that few options are made, and not much more than there are pipelines, so that what fits then fits.
int holdersFor(std::size_t pipelines) {
  constexpr double kNearlyAsMany = 1.1;
  return static_cast<int>(
      std::bit_floor(std::max<std::size_t>(1, static_cast<std::size_t>(kNearlyAsMany * static_cast<double>(pipelines)))));
}

}  // namespace

std::vector<double> ColumnSearch::ratesOf(Aim aim) const {
  if (aim == Aim::ClosedForm) return {};
  const int pipelines = std::max(2, static_cast<int>(session_.incumbent().size()));
  return space_.planSyncRates(pipelines);
}

void ColumnSearch::addColumn(Pool& pool, const PriceSearch& search, const Path& path, int microBatches) {
  const StageOptions& options = space_.options(holders_);
  const std::vector<Resource>& resources = space_.resources();
  Column column{.path = path, .dps = {}, .uses = std::vector<int>(resources.size(), 0)};
  std::int64_t samples = 1;
  for (const PathStage& stage : path) samples = std::max(samples, options.options()[stage.option].samples);
  column.microBatch = static_cast<int>(samples);
  for (const PathStage& stage : path) {
    const StageOption& option = options.options()[stage.option];
    const auto dp = static_cast<int>((samples + option.samples - 1) / option.samples);
    if (dp > space_.limits().mostDp) return;
    column.dps.push_back(dp);
    for (std::size_t r = 0; r < resources.size(); ++r) column.uses[r] += resources[r].usedBy(option) * dp;
  }
  // What does not fit still says what the resources are worth, unless it is far from fitting.
  for (std::size_t r = 0; r < resources.size(); ++r) {
    if (column.uses[r] > 2 * space_.amounts()[r]) return;
  }
  column.mostMicroBatches = static_cast<int>(path.size()) <= microBatches ? space_.batch() : microBatches;
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

void ColumnSearch::chooseHolders() {
  for (int round = 0; round < kMostHolderRounds && !session_.stopped(); ++round) {
    PriceSearch search(space_.options(holders_), space_.resources(), Measure::ClosedForm, space_.batch(), space_.deviceCount(),
                       {});
    Pool pool;
    const auto onPath = [&](const Path& path, int m) { addColumn(pool, search, path, m); };
    search.sketch({.prices = prices_}, onPath);
    std::optional<RelaxedTime> relaxed;
    for (int again = 0; again < kSketches && !session_.stopped(); ++again) {
      relaxed = leastRelaxedTime(pool.columns, space_.amounts(), space_.batch(), stopped_);
      if (!relaxed) break;
      if (again == 0 && session_.incumbent().empty() && maker_.plansFrom(pool.columns, holders_, relaxed->time) == 0) {
        // What sketches find need not fit: one pipeline on everything does.
        search.fit(
            space_.amounts(), space_.batch(), 1, space_.limits().mostDp, [this] { return session_.stopped(); }, onPath);
        maker_.plansFrom(pool.columns, holders_, relaxed->time);
      }
      search.sketch(between({.prices = prices_}, relaxed->packing, space_.amounts(), 0.5), onPath);
    }
    double pipelines = 2 * holders_;
    if (relaxed) {
      maker_.plansFrom(pool.columns, holders_, relaxed->time);
      pipelines = 0;
      for (const auto& [column, amount] : relaxed->packing.fractions) pipelines += amount;
    }
    const int next = holdersFor(static_cast<std::size_t>(std::clamp(pipelines, 1.0, 1.0 * space_.deviceCount())));
    if (!space_.isSharded() || next <= holders_) break;
    holders_ = next;
  }
  // A first search under prices shows more pipelines than sketches do.
  for (int round = 0; round < kMostHolderRounds && space_.isSharded() && !session_.stopped(); ++round) {
    const int next = holdersFor(improveOnce(Aim::ClosedForm, 1));
    if (next <= holders_) break;
    holders_ = next;
  }
}

bool ColumnSearch::startFrom(const Plan& last) {
  const CostModel& model = space_.model();
  if (last.model.unitCount() != model.model().unitCount() || last.pipelines.empty()) return false;
  holders_ = std::min(holdersFor(last.pipelines.size()), holdersFor(static_cast<std::size_t>(space_.deviceCount())));
  const std::vector<StageOption>& options = space_.options(holders_).options();
  PriceSearch search(space_.options(holders_), space_.resources(), Measure::ClosedForm, space_.batch(), space_.deviceCount(), {});
  Pool pool;
  for (const Pipeline& pipeline : last.pipelines) {
    Path path;
    for (const Stage& stage : pipeline.stages) {
      const std::string& type = last.cluster.typeOf(stage.devices.front()).name;
      const std::int64_t samples = (pipeline.microBatch + stage.dp - 1) / stage.dp;
      const auto option = std::ranges::find_if(options, [&](const StageOption& o) {
        return o.tp == stage.tp && o.samples == samples && model.typeOfKind(o.kind).name == type;
      });
      if (option == options.end()) break;
      path.push_back({static_cast<std::size_t>(option - options.begin()), stage.units});
    }
    if (path.size() == pipeline.stages.size())
      addColumn(pool, search, path, static_cast<int>(std::min<std::int64_t>(pipeline.microBatchCount(), 1'000'000'000)));
  }
  const auto relaxed = leastRelaxedTime(pool.columns, space_.amounts(), space_.batch(), stopped_);
  if (!relaxed) return false;
  maker_.plansFrom(pool.columns, holders_, relaxed->time);
  if (const auto prices = space_.pricesFrom(last.search)) prices_ = *prices;
  return true;
}

void ColumnSearch::improve(Aim aim, int mostRounds) { static_cast<void>(improveOnce(aim, mostRounds)); }

void ColumnSearch::improveForIncumbent(int mostRounds) {
  const int pipelines = static_cast<int>(session_.incumbent().size());
  if (!space_.isSharded() || pipelines <= holders_) return;
  const int before = std::exchange(holders_, pipelines);
  const std::vector<double> pricesBefore = prices_;
  const double closedForm = maker_.closedForm();
  improve(Aim::ClosedForm, mostRounds);
  if (maker_.closedForm() < closedForm) return;
  holders_ = before;
  prices_ = pricesBefore;
}

std::size_t ColumnSearch::improveOnce(Aim aim, int mostRounds) {
  PriceSearch search(space_.options(holders_), space_.resources(), Measure::ClosedForm, space_.batch(), space_.deviceCount(),
                     ratesOf(aim), Synced::FirstStage);
  Pool pool;
  const std::size_t pipelines = findPrices(search, pool, mostRounds);
  if (mostRounds > 1) fitFew(search, pool, aim);
  return pipelines;
}

std::size_t ColumnSearch::findPrices(PriceSearch& search, Pool& pool, int mostRounds) {
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
    const double bound = search.run(ask, limits, onPath).bound;
    if (bound > bestBound) {
      step = bound > bestBound * (1 + kNoticeable) ? 0.5 : step * 0.7;
      bestBound = bound;
      best = ask;
    } else {
      step *= 0.5;
    }
    auto relaxed = leastRelaxedTime(pool.columns, space_.amounts(), space_.batch(), stopped_);
    for (int again = 0; relaxed && again < kSketches && !session_.stopped(); ++again) {
      const std::size_t before = pool.columns.size();
      search.sketch(between(best, relaxed->packing, space_.amounts(), again % 2 == 0 ? 1.0 : step), onPath);
      if (pool.columns.size() > before) relaxed = leastRelaxedTime(pool.columns, space_.amounts(), space_.batch(), stopped_);
    }
    if (!relaxed || session_.stopped()) break;
    const bool isDone = bestBound >= relaxed->time * (1 - kPriceGap) || step < kLeastStep || round + 1 == mostRounds;
    if (relaxed->time < packedAt * (1 - kWorthPacking) || isDone) {
      packedAt = relaxed->time;
      if (const std::size_t made = maker_.plansFrom(pool.columns, holders_, relaxed->time); made > 0) pipelines = made;
    }
    if (isDone) break;
    ask = between(best, relaxed->packing, space_.amounts(), step);
  }
  prices_ = space_.normalized(best.prices);
  return pipelines;
}

void ColumnSearch::fitFew(PriceSearch& search, Pool& pool, Aim aim) {
  const std::int64_t batch = space_.batch();
  double pipelines = 1;
  std::set<int> microBatches = {1, 2};
  if (const auto relaxed = leastRelaxedTime(pool.columns, space_.amounts(), batch, stopped_)) {
    pipelines = 0;
    for (const auto& [column, amount] : relaxed->packing.fractions) {
      pipelines += amount;
      microBatches.insert(pool.columns[column].microBatch);
    }
  }
  if (space_.isTiny()) {
    for (int microBatch = 1; microBatch <= std::min<std::int64_t>(batch, kMostTinyMicroBatch); ++microBatch)
      microBatches.insert(microBatch);
  }
  if (pipelines > kFewPipelines && !space_.pipelines()) return;
  const auto onPath = [&](const Path& path, int m) { addColumn(pool, search, path, m); };
  const auto stopped = [this] { return session_.stopped(); };
  const int mostParts = space_.pipelines().value_or(std::max(2, static_cast<int>(2 * pipelines)));
  for (int parts = space_.pipelines().value_or(1); parts <= mostParts && parts <= batch && !stopped(); ++parts) {
    std::vector<int> room = space_.amounts();
    for (int& amount : room) amount /= parts;
    const std::int64_t samples = (batch + parts - 1) / parts;
    // So many pipelines shard their state further.
    const int before = std::exchange(holders_, std::max(holders_, parts));
    PriceSearch further(space_.options(holders_), space_.resources(), Measure::ClosedForm, batch, space_.deviceCount(),
                        ratesOf(aim), Synced::FirstStage);
    for (const int microBatch : microBatches) {
      if (microBatch > samples) continue;
      search.fit(room, samples, microBatch, space_.limits().mostDp, stopped, onPath);
      if (holders_ > before) further.fit(room, samples, microBatch, space_.limits().mostDp, stopped, onPath);
    }
    holders_ = before;
  }
  for (int round = 0; round < kFitRounds && !stopped(); ++round) {
    const auto relaxed = leastRelaxedTime(pool.columns, space_.amounts(), batch, stopped_);
    if (!relaxed) return;
    fitRest(search, pool, *relaxed, microBatches);
    const double before = maker_.closedForm();
    maker_.plansFrom(pool.columns, holders_, relaxed->time);
    if (maker_.closedForm() >= before * (1 - 1e-3)) break;
  }
}

/// Pipelines for what is left beside the columns that train most for their price, and beside the whole part of the packing with
/// none or one less of each.
void ColumnSearch::fitRest(PriceSearch& search, Pool& pool, const RelaxedTime& relaxed, const std::set<int>& microBatches) {
  const auto onPath = [&](const Path& path, int m) { addColumn(pool, search, path, m); };
  const auto stopped = [this] { return session_.stopped(); };
  const auto fitAll = [&](const std::vector<int>& room, std::int64_t samples) {
    for (const int microBatch : microBatches) {
      if (microBatch <= samples) search.fit(room, samples, microBatch, space_.limits().mostDp, stopped, onPath);
    }
  };
  const double time =
      std::isfinite(maker_.closedForm()) ? std::max(relaxed.time, 0.99 * maker_.closedForm()) : 1.05 * relaxed.time;
  std::vector<std::pair<double, std::size_t>> ranked;  // by what a column loses against the prices
  for (std::size_t j = 0; j < pool.columns.size(); ++j) {
    double price = 0;
    for (std::size_t r = 0; r < space_.amounts().size(); ++r) price += relaxed.packing.prices[r] * pool.columns[j].uses[r];
    ranked.emplace_back(price - static_cast<double>(pool.columns[j].samplesIn(time)), j);
  }
  std::ranges::sort(ranked);
  int fits = 0;
  std::set<std::vector<int>> seen;
  for (const auto& [cost, j] : ranked) {
    if (fits >= kFitsARound || stopped()) break;
    const Column column = pool.columns[j];
    std::vector<int> room = space_.amounts();
    std::int64_t samples = space_.batch();
    while (true) {
      bool isRoom = column.samplesIn(time) > 0;
      for (std::size_t r = 0; r < room.size(); ++r) isRoom = isRoom && (room[r] -= column.uses[r]) >= 0;
      samples -= column.samplesIn(time);
      if (!isRoom || samples <= 0) break;
      if (!seen.insert(room).second) continue;
      fitAll(room, samples);
      ++fits;
    }
  }
  for (std::size_t less = 0; less <= relaxed.packing.fractions.size() && !stopped(); ++less) {
    std::vector<int> room = space_.amounts();
    std::int64_t samples = space_.batch();
    for (std::size_t f = 0; f < relaxed.packing.fractions.size(); ++f) {
      const auto& [j, amount] = relaxed.packing.fractions[f];
      const int count = std::max(0, static_cast<int>(std::floor(amount + 1e-6)) - (f + 1 == less ? 1 : 0));
      for (std::size_t r = 0; r < room.size(); ++r) room[r] -= count * pool.columns[j].uses[r];
      samples -= count * pool.columns[j].samplesIn(time);
    }
    for (int parts = 1; parts <= kMostParts && samples >= parts; ++parts) {
      std::vector<int> part = room;
      for (int& amount : part) amount /= parts;
      fitAll(part, (samples + parts - 1) / parts);
    }
  }
}

}  // namespace evenkeel::optimal
