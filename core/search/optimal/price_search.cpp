// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/optimal/price_search.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <queue>

namespace evenkeel::optimal {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
/// Rounding of sums of seconds must not lift a bound above a plan that meets it.
constexpr double kRoundingMargin = 1.0 - 1e-9;
/// From so many micro-batches on, one more changes too little to branch on; and so do paces this near to each other.
constexpr int kManyMicroBatches = 256;
constexpr double kSamePace = 1.0003;
constexpr int kMostPaceDoublings = 80;
constexpr double kMostTheta = 1e4;
constexpr double kSketchSteps = 1.3;

/// out[j] = min(out[j], cost + in[j])
void relax(double* out, const double* in, std::size_t count, double cost) {
  for (std::size_t j = 0; j < count; ++j) {
    const double sum = cost + in[j];
    out[j] = sum < out[j] ? sum : out[j];
  }
}

/// Of (min(q, M) - 1) / (M - 1), the most over all M >= least.
double forwardsAhead(int stages, int least) {
  return least > stages ? static_cast<double>(stages - 1) / (least - 1) : stages > 1 ? 1.0 : 0.0;
}

}  // namespace

PathTime timeOf(const StageOptions& options, const Path& path, Measure measure, int microBatches) {
  PathTime time;
  const int count = static_cast<int>(path.size());
  for (int i = 0; i < count; ++i) {
    const PathStage& stage = path[static_cast<std::size_t>(i)];
    const double t = options.time(stage.option, stage.units, std::min(count - i, microBatches));
    const double send = i + 1 < count ? options.send(stage.option) : 0.0;
    if (measure == Measure::ClosedForm) {
      time.fill += t + send;
      time.pace = std::max(time.pace, t + send);
    } else {
      time.fill += t + 2 * send;
      const double ahead =
          microBatches > 1 ? static_cast<double>(std::min(count - i, microBatches) - 1) / (microBatches - 1) : 0.0;
      time.pace = std::max(time.pace, t - ahead * options.forward(stage.option, stage.units));
    }
  }
  return time;
}

PriceSearch::PriceSearch(const StageOptions& options, Measure measure, bool ragged, std::int64_t batch, int mostStages)
    : options_(options),
      measure_(measure),
      late_(ragged ? 1.0 : 0.0),
      batch_(static_cast<double>(batch)),
      unitCount_(options.unitCount()),
      mostStages_(std::min(mostStages, options.unitCount())) {
  if (measure == Measure::Schedule) {
    for (std::size_t o = 0; o < options.options().size(); ++o) {
      auto& of = forwards_.emplace_back();
      for (int count = 1; count < unitCount_; ++count) {
        if (count <= unitCount_ - 2) of[1].push_back(options.forward(o, {1, 1 + count}));
        if (count <= unitCount_ - 3) of[0].push_back(options.forward(o, {2, 2 + count}));
        of[2].push_back(options.forward(o, {0, count}));
      }
    }
  }
  const auto half = static_cast<std::size_t>(unitCount_ / 2 + 1);
  value_.assign(static_cast<std::size_t>(mostStages_), {std::vector<double>(half, kNever), std::vector<double>(half, kNever)});
  merged_.resize(static_cast<std::size_t>(mostStages_));
}

double PriceSearch::addedCost(std::size_t option, double perShare) const {
  return (measure_ == Measure::ClosedForm ? 1.0 : 2.0) * options_.send(option) + perShare * prices_[option];
}

/// The cheapest option for each number of units of the first of `stages` stages.
void PriceSearch::merge(const Node& node, int stages, double perShare) {
  MergedRow& row = merged_[static_cast<std::size_t>(stages - 1)];
  const auto most = static_cast<std::size_t>(unitCount_);
  for (auto* part : {&row.inner[0], &row.inner[1], &row.first}) part->assign(most, kNever);
  const auto& times = options_.times(std::min(stages, node.least));
  const double ahead = forwardsAhead(stages, node.least);
  std::array<std::size_t, 3> longest{};
  for (std::size_t o = 0; o < times.size(); ++o) {
    const double added = addedCost(o, perShare);
    const auto take = [&](const std::vector<double>& of, std::vector<double>& out, std::size_t part) {
      std::size_t count = 0;
      if (measure_ == Measure::ClosedForm) {
        const double limit = node.mostPace - options_.send(o);
        count = static_cast<std::size_t>(std::upper_bound(of.begin(), of.end(), limit) - of.begin());
      } else {
        const std::vector<double>& forward = forwards_[o][part];
        std::size_t low = 0, high = of.size();
        while (low < high) {
          const std::size_t middle = (low + high) / 2;
          if (of[middle] - ahead * forward[middle] <= node.mostPace) low = middle + 1;
          else high = middle;
        }
        count = low;
      }
      relax(out.data(), of.data(), count, added);
      longest[part] = std::max(longest[part], count);
    };
    take(times[o].inner[0], row.inner[0], 0);
    take(times[o].inner[1], row.inner[1], 1);
    take(times[o].first, row.first, 2);
  }
  row.inner[0].resize(longest[0]);
  row.inner[1].resize(longest[1]);
  row.first.resize(longest[2]);
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

PriceSearch::Shortest PriceSearch::shortest(const Node& node, double perShare) {
  ++shortestPaths_;
  Shortest best{.cost = kNever, .path = {}};
  int bestStages = 0;
  auto& last = value_.front();
  for (auto& part : last) std::ranges::fill(part, kNever);
  const auto& times = options_.times(1);
  for (std::size_t o = 0; o < times.size(); ++o) {
    const double added = perShare * prices_[o];
    const std::vector<double>& of = times[o].last;
    for (std::size_t i = 0; i < of.size() && of[i] <= node.mostPace; ++i) {
      const std::size_t unit = static_cast<std::size_t>(unitCount_) - (i + 1);
      double& value = last[unit % 2][unit / 2];
      value = std::min(value, of[i] + added);
    }
    if (times[o].alone <= node.mostPace && times[o].alone + added < best.cost) {
      best.cost = times[o].alone + added;
      bestStages = 1;
      best.path = {{o, {0, unitCount_}}};
    }
  }
  for (int stages = 2; stages <= mostStages_; ++stages) {
    merge(node, stages, perShare);
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
    const auto& now = value_[static_cast<std::size_t>(stages - 1)];
    // More stages only add to it.
    if (std::min(*std::ranges::min_element(now[0]), *std::ranges::min_element(now[1])) >= best.cost) break;
  }
  if (bestStages > 1) best.path = pathOf(bestStages, node, perShare);
  for (const PathStage& stage : best.path) best.share += prices_[stage.option];
  return best;
}

Path PriceSearch::pathOf(int stages, const Node& node, double perShare) const {
  Path path;
  int unit = 0;
  for (int left = stages; left >= 1; --left) {
    if (left == 1) {
      const auto& times = options_.times(1);
      const auto count = static_cast<std::size_t>(unitCount_ - unit);
      PathStage stage{0, {unit, unitCount_}};
      double best = kNever;
      for (std::size_t o = 0; o < times.size(); ++o) {
        if (times[o].last.size() < count || times[o].last[count - 1] > node.mostPace) continue;
        const double cost = times[o].last[count - 1] + perShare * prices_[o];
        if (cost < best) {
          best = cost;
          stage.option = o;
        }
      }
      path.push_back(stage);
      break;
    }
    const MergedRow& row = merged_[static_cast<std::size_t>(left - 1)];
    const bool isFirst = unit == 0;
    const std::vector<double>& costs = isFirst ? row.first : row.inner[static_cast<std::size_t>(unit % 2)];
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
    const auto& times = options_.times(std::min(left, node.least));
    const double ahead = forwardsAhead(left, node.least);
    PathStage stage{0, {unit, unit + static_cast<int>(count)}};
    double least = kNever;
    for (std::size_t o = 0; o < times.size(); ++o) {
      const std::vector<double>& of = isFirst ? times[o].first : times[o].inner[static_cast<std::size_t>(unit % 2)];
      if (of.size() < count) continue;
      const double pace = measure_ == Measure::ClosedForm
                              ? of[count - 1] + options_.send(o)
                              : of[count - 1] - ahead * forwards_[o][isFirst ? 2 : static_cast<std::size_t>(unit % 2)][count - 1];
      if (pace > node.mostPace * (1 + 1e-12)) continue;
      const double cost = of[count - 1] + addedCost(o, perShare);
      if (cost < least) {
        least = cost;
        stage.option = o;
      }
    }
    path.push_back(stage);
    unit += static_cast<int>(count);
  }
  return path;
}

void PriceSearch::offer(const Shortest& found, const Node& node) {
  if (found.path.empty()) return;
  const double asked = std::ceil(found.share - late_ - 1e-9);
  const int microBatches = static_cast<int>(std::clamp(asked, 1.0, 1e9));
  const PathTime time = timeOf(options_, found.path, measure_, microBatches);
  const double reached = time.of(microBatches);
  if (reached < result_.reached) {
    result_.reached = reached;
    result_.best = found.path;
  }
  if (*onPath_) (*onPath_)(found.path, static_cast<int>(found.path.size()) <= node.least ? microBatches : node.least);
}

/// The bound of a node: the multiplier of the number of micro-batches is sought by a few steps; each of them is a bound.
void PriceSearch::evaluate(Node& node, double enough) {
  node.evaluated = true;
  const auto tryAt = [&](double theta) {
    const Shortest found = shortest(node, theta * node.pace);
    double constant = -(1.0 + theta * late_) * node.pace;
    if (theta <= 1) constant += (1 - theta) * node.least * node.pace;
    else constant -= (theta - 1) * node.most * node.pace;
    node.bound = std::max(node.bound, (found.cost + constant) * kRoundingMargin);
    offer(found, node);
    return found.cost == kNever ? 0.0 : found.share - late_;
  };
  const bool isOpen = node.most >= kManyMicroBatches;
  double share = tryAt(1.0);
  if (node.bound >= enough) return;
  if (share < node.least && share > 0) {
    double low = 0, high = 1;
    for (int step = 0; step < 4 && node.bound < enough; ++step) {
      const double theta = (low + high) / 2;
      (tryAt(theta) > node.least ? low : high) = theta;
    }
  } else if (share > node.most && !isOpen) {
    double low = 1, high = 2;
    while (high < kMostTheta && node.bound < enough && (share = tryAt(high)) > node.most) {
      low = high;
      high *= 4;
    }
    for (int step = 0; step < 3 && node.bound < enough; ++step) {
      const double theta = (low + high) / 2;
      (tryAt(theta) > node.most ? low : high) = theta;
    }
  }
}

void PriceSearch::setPrices(std::span<const double> prices) {
  prices_.clear();
  for (const StageOption& option : options_.options()) {
    const double price = prices[static_cast<std::size_t>(option.kind)];
    assert(std::isfinite(price) && price >= 0);
    prices_.push_back(batch_ * price * option.tp / static_cast<double>(option.mostSamples));
  }
}

/// No stage with a block is faster than one block alone. Infinite: no option holds a block.
double PriceSearch::leastPace() const {
  double least = kNever;
  for (std::size_t o = 0; o < options_.options().size(); ++o) {
    for (const UnitRange unit : {UnitRange{1, 2}, UnitRange{2, 3}}) {
      const double time = options_.time(o, unit, 1);
      least = std::min(least, measure_ == Measure::ClosedForm ? time : time - options_.forward(o, unit));
    }
  }
  return least;
}

void PriceSearch::sketch(std::span<const double> prices, const OnPath& onPath) {
  result_ = {.bound = 0, .reached = kNever, .best = {}};
  onPath_ = &onPath;
  setPrices(prices);
  const double least = leastPace();
  double cheapest = kNever;
  for (double pace = least; least < kNever && pace < least * 1e6; pace *= kSketchSteps) {
    const Node node{pace, pace * kSketchSteps, mostStages_, kManyMicroBatches, 0};
    const Shortest found = shortest(node, pace);
    offer(found, node);
    if (found.path.empty()) continue;
    // Slower paces only lengthen the fill once a stage holds the model.
    if (found.path.size() == 1 && found.cost > 4 * cheapest) break;
    cheapest = std::min(cheapest, found.cost);
  }
  shortestPaths_ = 0;
  onPath_ = nullptr;
}

PriceSearch::Result PriceSearch::run(std::span<const double> prices, const Limits& limits, const OnPath& onPath) {
  result_ = {.bound = 0, .reached = kNever, .best = {}};
  onPath_ = &onPath;
  setPrices(prices);
  const double leastPace = this->leastPace();
  const auto later = [](const Node& a, const Node& b) { return a.bound > b.bound; };
  std::priority_queue<Node, std::vector<Node>, decltype(later)> open(later);
  if (leastPace > 0 && leastPace < kNever) {
    const int most = static_cast<int>(std::min(batch_, 1e9));
    // With one micro-batch there is only the fill.
    open.push({leastPace, kNever, 1, 1, leastPace * kRoundingMargin});
    double pace = leastPace;
    for (int i = 0; i < kMostPaceDoublings; ++i, pace *= 2) {
      for (int least = 2; least <= most; least *= 2) {
        const bool isLast = least >= kManyMicroBatches;
        const int end = isLast ? most : std::min(most, 2 * least - 1);
        // Every pipeline fills at least one pace.
        open.push({pace, 2 * pace, least, end, least * pace * kRoundingMargin});
        if (isLast) break;
      }
    }
  }
  double closed = kNever;
  while (true) {
    if (open.empty()) {
      result_.bound = closed;
      break;
    }
    Node node = open.top();
    result_.bound = std::min(closed, node.bound);
    const double target = std::min(limits.enough, result_.reached * (1 - limits.tolerance));
    if (result_.bound >= target || result_.reached < limits.atLeast || shortestPaths_ > limits.mostPaths || limits.stopped()) break;
    open.pop();
    if (!node.evaluated) {
      evaluate(node, target);
      open.push(node);
      continue;
    }
    const bool oneM = node.least == node.most || node.least >= kManyMicroBatches;
    const double paceRatio = node.mostPace / node.pace;
    if (node.most == 1 || (oneM && paceRatio < kSamePace)) {
      closed = std::min(closed, node.bound);
      continue;
    }
    const double countRatio = oneM ? 1.0 : static_cast<double>(node.most + 1) / node.least;
    Node other = node;
    node.evaluated = other.evaluated = false;
    if (countRatio > paceRatio * paceRatio || paceRatio < kSamePace) {
      const int middle = node.least + (node.most - node.least) / 2;
      node.most = middle;
      other.least = middle + 1;
    } else {
      const double middle = std::sqrt(node.pace * node.mostPace);
      node.mostPace = other.pace = middle;
    }
    open.push(node);
    open.push(other);
  }
  result_.nodes = shortestPaths_;
  shortestPaths_ = 0;
  onPath_ = nullptr;
  return result_;
}

}  // namespace evenkeel::optimal
