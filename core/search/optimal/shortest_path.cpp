// SPDX-License-Identifier: GPL-3.0-or-later
// The part of PriceSearch that finds the least costly path of a node.
#include <algorithm>
#include <cassert>
#include <limits>

#include "core/search/optimal/price_search.h"

namespace evenkeel::optimal {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::size_t kFirst = 2, kLast = 3;  // parts of forwards_ and syncs_

/// out[j] = min(out[j], cost + in[j])
void relax(double* out, const double* in, std::size_t count, double cost) {
  for (std::size_t j = 0; j < count; ++j) {
    const double sum = cost + in[j];
    out[j] = sum < out[j] ? sum : out[j];
  }
}

/// out[j] = min(out[j], cost + (1 - part) in[j] + part less[j])
void relaxMixed(double* out, const double* in, const double* less, std::size_t count, double cost, double part) {
  for (std::size_t j = 0; j < count; ++j) {
    const double sum = cost + in[j] - part * (in[j] - less[j]);
    out[j] = sum < out[j] ? sum : out[j];
  }
}

}  // namespace

PriceSearch::PriceSearch(const StageOptions& options, std::span<const Resource> resources, Measure measure, std::int64_t batch,
                         int mostStages, std::vector<double> syncRates, Synced synced)
    : options_(options),
      resources_(resources),
      measure_(measure),
      batch_(static_cast<double>(batch)),
      unitCount_(options.unitCount()),
      mostStages_(std::min(mostStages, options.unitCount())),
      synced_(synced) {
  if (measure == Measure::Schedule) {
    for (std::size_t o = 0; o < options.options().size(); ++o) {
      auto& of = forwards_.emplace_back();
      for (int count = 1; count < unitCount_; ++count) {
        if (count <= unitCount_ - 2) of[1].push_back(options.forward(o, {1, 1 + count}));
        if (count <= unitCount_ - 3) of[0].push_back(options.forward(o, {2, 2 + count}));
        of[kFirst].push_back(options.forward(o, {0, count}));
      }
    }
  }
  // Of a stage, less what its forwards may be ahead.
  for (std::size_t o = 0; o < options.options().size(); ++o) {
    double least = kNever;
    for (const UnitRange unit : {UnitRange{0, 1}, UnitRange{1, 2}, UnitRange{2, 3}}) {
      const double time = options.time(o, unit, 1);
      least = std::min(least, measure == Measure::ClosedForm ? time : time - options.forward(o, unit));
    }
    leastTimes_.push_back(least);
  }
  setSyncRates(std::move(syncRates));
  const auto half = static_cast<std::size_t>(unitCount_ / 2 + 1);
  value_.assign(static_cast<std::size_t>(mostStages_), {std::vector<double>(half, kNever), std::vector<double>(half, kNever)});
  merged_.resize(static_cast<std::size_t>(mostStages_));
}

void PriceSearch::setSyncRates(std::vector<double> rates) {
  syncRates_ = std::move(rates);
  syncs_.clear();
  if (syncRates_.empty()) return;
  for (std::size_t o = 0; o < options_.options().size(); ++o) {
    const StageOption& option = options_.options()[o];
    // All numbers of samples store the same.
    if (o > 0 && options_.options()[o - 1].kind == option.kind && options_.options()[o - 1].tp == option.tp) {
      syncs_.push_back(syncs_.back());
      continue;
    }
    const double rate = syncRates_[static_cast<std::size_t>(option.kind)];
    const auto sync = [&](UnitRange units) { return rate * static_cast<double>(options_.parameters(o, units)); };
    auto& of = syncs_.emplace_back();
    for (int count = 1; count < unitCount_; ++count) {
      if (count <= unitCount_ - 2) of[1].push_back(sync({1, 1 + count}));
      if (count <= unitCount_ - 3) of[0].push_back(sync({2, 2 + count}));
      of[kFirst].push_back(sync({0, count}));
      of[kLast].push_back(sync({unitCount_ - count, unitCount_}));
    }
  }
}

double PriceSearch::syncOf(const Path& path) const {
  double longest = 0;
  for (const PathStage& stage : path) {
    if (syncRates_.empty() || (synced_ == Synced::FirstStage && stage.units.first > 0)) break;
    const StageOption& option = options_.options()[stage.option];
    longest = std::max(longest, syncRates_[static_cast<std::size_t>(option.kind)] *
                                    static_cast<double>(options_.parameters(stage.option, stage.units)));
  }
  return longest;
}

double PriceSearch::addedCost(std::size_t option, double perShare, double forgiven) const {
  return (measure_ == Measure::ClosedForm ? 1.0 : 2.0 - forgiven) * options_.send(option) + perShare * prices_[option];
}

/// A part of a single sample there is not: a smaller last micro-batch takes stages of one sample as long as a full one.
double PriceSearch::forgivenOf(std::size_t option, double forgiven) const {
  return options_.options()[option].mostSamples == 1 ? 0.0 : forgiven;
}

/// Forwards of a stage that are over before its first backward, but for the first one, for each further micro-batch: the most of
/// (min(q, M) - 1) / (x - 1) over the node's x, where a last micro-batch may be a part (x > M - 1). < 0: closed form.
double PriceSearch::aheadOf(int stages, const Node& node) const {
  if (measure_ == Measure::ClosedForm) return -1.0;
  const int least = ask_.ragged ? node.least - 1 : node.least;
  return least > stages ? static_cast<double>(stages - 1) / (least - 1) : stages > 1 ? 1.0 : 0.0;
}

/// So many units of the part keep within the node's pace and sync; `ahead` < 0: closed form.
bool PriceSearch::isWithin(std::size_t option, std::size_t part, std::span<const double> times, std::size_t count,
                           const Node& node, double ahead) const {
  const double pace =
      ahead < 0 ? times[count - 1] + options_.send(option) : times[count - 1] - ahead * forwards_[option][part][count - 1];
  const bool counts = !syncs_.empty() && (synced_ == Synced::AnyStage || part == kFirst);
  return pace <= node.mostPace && (!counts || syncs_[option][part][count - 1] <= node.mostSync);
}

/// The cheapest option for each number of units of a stage.
void PriceSearch::merge(MergedRow& row, const Node& node, int inFlight, double ahead, double perShare, double forgiven) {
  const auto most = static_cast<std::size_t>(unitCount_);
  for (auto* part : {&row.inner[0], &row.inner[1], &row.first}) part->assign(most, kNever);
  const auto& times = options_.times(inFlight);
  std::array<std::size_t, 3> longest{};
  for (const std::size_t o : active_) {
    const double forgivenHere = forgivenOf(o, forgiven);
    const double added = addedCost(o, perShare, forgivenHere);
    const auto take = [&](std::span<const double> of, std::vector<double>& out, std::size_t part) {
      // Little changes from row to row.
      std::size_t& count = counts_[o][part];
      count = std::min(count, of.size());
      while (count > 0 && !isWithin(o, part, of, count, node, ahead)) --count;
      while (count < of.size() && isWithin(o, part, of, count + 1, node, ahead)) ++count;
      if (forgivenHere > 0) relaxMixed(out.data(), of.data(), forwards_[o][part].data(), count, added, forgivenHere);
      else relax(out.data(), of.data(), count, added);
      longest[part] = std::max(longest[part], count);
    };
    take(times[o].inner[0], row.inner[0], 0);
    take(times[o].inner[1], row.inner[1], 1);
    take(times[o].first, row.first, kFirst);
  }
  // Times grow with the stages behind: by the closed form, what takes no unit now never will.
  if (ahead < 0) std::erase_if(active_, [&](std::size_t o) { return counts_[o] == std::array<std::size_t, 3>{}; });
  row.inner[0].resize(longest[0]);
  row.inner[1].resize(longest[1]);
  row.first.resize(longest[kFirst]);
}

void PriceSearch::relaxBefore() {
  const std::size_t half = value_.front()[0].size();
  for (auto& part : before_) part.assign(half, kNever);
  for (std::size_t i = 0; i < freeRow_.first.size(); ++i) before_[(i + 1) % 2][(i + 1) / 2] = freeRow_.first[i];
  for (std::size_t unit = 1; unit + 1 < static_cast<std::size_t>(unitCount_); ++unit) {
    const double cost = before_[unit % 2][unit / 2];
    const std::vector<double>& inner = freeRow_.inner[unit % 2];
    for (std::size_t i = 0; i < inner.size() && unit + i + 1 < static_cast<std::size_t>(unitCount_); ++i) {
      double& next = before_[(unit + i + 1) % 2][(unit + i + 1) / 2];
      next = std::min(next, cost + inner[i]);
    }
  }
}

/// value_ of so many stages from that of one less.
void PriceSearch::addStages(int stages) {
  const MergedRow& row = merged_[static_cast<std::size_t>(stages - 1)];
  auto& out = value_[static_cast<std::size_t>(stages - 1)];
  const auto& in = value_[static_cast<std::size_t>(stages - 2)];
  const std::size_t half = out[0].size();
  for (std::size_t parity = 0; parity < 2; ++parity) {
    std::ranges::fill(out[parity], kNever);
    for (std::size_t i = 0; i < row.inner[parity].size(); ++i) {
      const std::size_t units = i + 1;
      const std::size_t to = (parity + units) % 2, shift = (parity + units) / 2;
      if (shift >= half) break;
      relax(out[parity].data(), in[to].data() + shift, half - shift, row.inner[parity][i]);
    }
  }
  out[0][0] = kNever;  // the embedding is the first stage's
}

PriceSearch::Shortest PriceSearch::shortest(const Node& node, double perShare, double forgiven, double late) {
  ++result_.paths;
  active_.clear();
  counts_.assign(prices_.size(), {});
  for (std::size_t o = 0; o < prices_.size(); ++o) {
    if (prices_[o] != kNever && leastTimes_[o] <= node.mostPace) active_.push_back(o);
  }
  Shortest best{.cost = kNever, .path = {}};
  int bestStages = 0;
  auto& last = value_.front();
  for (auto& part : last) std::ranges::fill(part, kNever);
  const auto& times = options_.times(1);
  const bool isLastSynced = !syncs_.empty() && synced_ == Synced::AnyStage;
  for (std::size_t o = 0; o < times.size(); ++o) {
    if (prices_[o] == kNever) continue;
    const double added = perShare * prices_[o];
    const std::span<const double> of = times[o].last;
    for (std::size_t i = 0; i < of.size() && of[i] <= node.mostPace; ++i) {
      if (isLastSynced && syncs_[o][kLast][i] > node.mostSync) break;
      const std::size_t unit = static_cast<std::size_t>(unitCount_) - (i + 1);
      double& value = last[unit % 2][unit / 2];
      value = std::min(value, of[i] + added);
    }
    // No stage is before it, so no part of the last micro-batch is late.
    const double inTime = ask_.partsShrink ? late * node.pace : 0.0;
    if (times[o].alone <= node.mostPace && times[o].alone + added + inTime < best.cost) {
      const Path alone = {{o, {0, unitCount_}}};
      if (syncOf(alone) > node.mostSync) continue;
      best.cost = times[o].alone + added + inTime;
      bestStages = 1;
      best.path = alone;
    }
  }
  if (mostStages_ > 1) merge(freeRow_, node, 1, aheadOf(mostStages_, node), perShare, forgiven);
  relaxBefore();
  for (int stages = 2; stages <= mostStages_; ++stages) {
    merge(merged_[static_cast<std::size_t>(stages - 1)], node, inFlightMicroBatches(measure_, stages, node.least), aheadOf(stages, node), perShare,
          forgiven);
    const auto& behind = value_[static_cast<std::size_t>(stages - 2)];
    const std::vector<double>& first = merged_[static_cast<std::size_t>(stages - 1)].first;
    for (std::size_t i = 0; i < first.size(); ++i) {
      const std::size_t unit = i + 1;
      const double cost = first[i] + behind[unit % 2][unit / 2];
      if (cost < best.cost) {
        best.cost = cost;
        bestStages = stages;
      }
    }
    if (stages == mostStages_) break;
    addStages(stages);
    // More stages in front must pay for the other units, whatever they are.
    const auto& now = value_[static_cast<std::size_t>(stages - 1)];
    double least = kNever;
    for (std::size_t parity = 0; parity < 2; ++parity) {
      for (std::size_t j = 0; j < now[parity].size(); ++j) least = std::min(least, now[parity][j] + before_[parity][j]);
    }
    if (least >= best.cost) break;
  }
  if (bestStages > 1) best.path = pathOf(bestStages, node, perShare, forgiven);
  for (const PathStage& stage : best.path) best.share += prices_[stage.option];
  return best;
}

Path PriceSearch::pathOf(int stages, const Node& node, double perShare, double forgiven) const {
  Path path;
  int unit = 0;
  for (int left = stages; left > 1; --left) {
    const MergedRow& row = merged_[static_cast<std::size_t>(left - 1)];
    const auto part = unit == 0 ? kFirst : static_cast<std::size_t>(unit % 2);
    const std::vector<double>& costs = part == kFirst ? row.first : row.inner[part];
    const auto& behind = value_[static_cast<std::size_t>(left - 2)];
    double best = kNever;
    std::size_t count = 0;
    for (std::size_t i = 0; i < costs.size(); ++i) {
      const std::size_t next = static_cast<std::size_t>(unit) + i + 1;
      if (next >= static_cast<std::size_t>(unitCount_)) break;
      const double cost = costs[i] + behind[next % 2][next / 2];
      if (cost < best) {
        best = cost;
        count = i + 1;
      }
    }
    assert(count > 0);
    const auto& times = options_.times(inFlightMicroBatches(measure_, left, node.least));
    const double ahead = aheadOf(left, node);
    PathStage stage{0, {unit, unit + static_cast<int>(count)}};
    double least = kNever;
    for (std::size_t o = 0; o < prices_.size(); ++o) {
      if (prices_[o] == kNever) continue;
      const std::span<const double> of = part == kFirst ? times[o].first : times[o].inner[part];
      if (of.size() < count || !isWithin(o, part, of, count, node, ahead)) continue;
      const double forgivenHere = forgivenOf(o, forgiven);
      double cost = of[count - 1] + addedCost(o, perShare, forgivenHere);
      if (forgivenHere > 0) cost -= forgivenHere * (of[count - 1] - forwards_[o][part][count - 1]);
      if (cost < least) {
        least = cost;
        stage.option = o;
      }
    }
    path.push_back(stage);
    unit += static_cast<int>(count);
  }
  const auto& times = options_.times(1);
  const auto count = static_cast<std::size_t>(unitCount_ - unit);
  const bool isLastSynced = !syncs_.empty() && synced_ == Synced::AnyStage;
  PathStage stage{0, {unit, unitCount_}};
  double best = kNever;
  for (std::size_t o = 0; o < times.size(); ++o) {
    if (prices_[o] == kNever || times[o].last.size() < count || times[o].last[count - 1] > node.mostPace) continue;
    if (isLastSynced && syncs_[o][kLast][count - 1] > node.mostSync) continue;
    const double cost = times[o].last[count - 1] + perShare * prices_[o];
    if (cost < best) {
      best = cost;
      stage.option = o;
    }
  }
  path.push_back(stage);
  return path;
}

}  // namespace evenkeel::optimal
