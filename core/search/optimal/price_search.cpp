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
/// From so many micro-batches on, one more changes too little to branch on; and so do paces and syncs this near to each other.
constexpr int kManyMicroBatches = 256;
constexpr double kSamePace = 1.0004, kSameSync = 2e-4;
constexpr int kMostPaceDoublings = 80;
constexpr double kMostTheta = 1e4;
constexpr double kSketchSteps = 1.3;
constexpr int kFitSteps = 16;
constexpr double kSlowestPace = 1e6;  // seconds
constexpr double kFitTolerance = 1.003, kFitDevices = 2.0, kFitSlack = 0.02;
/// w of Ask::ragged: good for pipelines of a few to a dozen stages of several samples, and of any number of stages of one sample.
constexpr double kRaggedWeight = 0.8, kOneSampleWeight = 0.2;
/// With so few micro-batches a late one is much, and pipelines of one long stage need another bound.
constexpr int kFewMicroBatches = 8;
constexpr double kShallowPart = 0.25;

}  // namespace

int inFlightMicroBatches(Measure measure, int stages, int microBatches) {
  if (stages < microBatches || measure == Measure::ClosedForm) return std::min(stages, microBatches);
  return std::max(1, microBatches - 1);
}

PathTime timeOf(const StageOptions& options, const Path& path, Measure measure, int microBatches) {
  PathTime time;
  const int count = static_cast<int>(path.size());
  for (int i = 0; i < count; ++i) {
    const PathStage& stage = path[static_cast<std::size_t>(i)];
    const double t = options.time(stage.option, stage.units, inFlightMicroBatches(measure, count - i, microBatches));
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

void PriceSearch::offer(const Shortest& found, const Node& node) {
  if (found.path.empty()) return;
  const double asked = std::ceil(found.share - 1e-9);
  const int microBatches = static_cast<int>(std::clamp(asked, 1.0, 1e9));
  const PathTime time = timeOf(options_, found.path, measure_, microBatches);
  const double reached = time.of(microBatches) + syncOf(found.path);
  if (reached < result_.reached) {
    result_.reached = reached;
    result_.best = found.path;
  }
  if (onPath_ && *onPath_) (*onPath_)(found.path, static_cast<int>(found.path.size()) <= node.least ? microBatches : node.least);
}

/// The bound of a node: the multiplier of the number of micro-batches is sought by a few steps; each of them is a bound.
void PriceSearch::evaluate(Node& node, double enough, const std::function<bool()>& stopped) {
  node.evaluated = true;
  double best = -kNever;
  // Of the last micro-batch: what may be missing at the bottleneck (late), and of the backwards before it (forgiven).
  const bool isRagged = ask_.ragged && node.most > 1;
  double late = 0, forgiven = 0;
  const auto setWeight = [&](double weight) {
    late = weight * weight;
    forgiven = (1 - weight) * (1 - weight);
  };
  if (isRagged) setWeight(ask_.partsShrink ? kRaggedWeight : 1.0);
  const double least = isRagged ? node.least - 1 : node.least;
  // The bottleneck alone works for x paces; `part` of the bound is the whole formula, the rest is that.
  const auto tryAt = [&](double theta, double part = 1.0) {
    const Shortest found = shortest(node, theta * node.pace / part, forgiven, late);
    double constant = -part * (1.0 + late) * node.pace;
    if (theta <= 1) constant += (1 - theta) * least * node.pace;
    else constant -= (theta - 1) * node.most * node.pace;
    const double bound = (part * found.cost + constant + node.sync) * kRoundingMargin;
    node.bound = std::max(node.bound, bound);
    offer(found, node);
    if (found.path.empty()) return 0.0;
    if (bound > best) {
      best = bound;
      const double microBatches = std::clamp(std::max(found.share, least), 1.0, 1e9);
      const PathTime time = timeOf(options_, found.path, measure_, node.least);
      node.paceSlack = (microBatches - 1) * std::max(0.0, std::min(time.pace, node.mostPace) - node.pace);
      node.pathSync = syncOf(found.path);
      node.syncSlack = std::max(0.0, node.pathSync - node.sync);
    }
    return found.share;
  };
  const bool isOpen = node.least >= kManyMicroBatches;
  double share = tryAt(1.0);
  if (node.bound >= enough || stopped()) return;
  if (isRagged && ask_.partsShrink) {
    const double before = best;
    setWeight(kOneSampleWeight);
    const double shareThen = tryAt(1.0);
    if (node.bound >= enough || stopped()) return;
    if (best > before) share = shareThen;
    else setWeight(kRaggedWeight);
  }
  if (isRagged && node.least <= kFewMicroBatches) {
    static_cast<void>(tryAt(1.0, kShallowPart));
    if (node.bound >= enough || stopped()) return;
  }
  if (share < least && share > 0) {
    double low = 0, high = 1;
    for (int step = 0; step < 4 && node.bound < enough && !stopped(); ++step) {
      const double theta = (low + high) / 2;
      (tryAt(theta) > least ? low : high) = theta;
    }
  } else if (share > node.most && !isOpen) {
    double low = 1, high = 2;
    while (high < kMostTheta && node.bound < enough && !stopped() && (share = tryAt(high)) > node.most) {
      low = high;
      high *= 4;
    }
    for (int step = 0; step < 3 && node.bound < enough && !stopped(); ++step) {
      const double theta = (low + high) / 2;
      (tryAt(theta) > node.most ? low : high) = theta;
    }
  }
}

void PriceSearch::setAsk(const Ask& ask) {
  ask_ = ask;
  prices_.clear();
  for (const StageOption& option : options_.options()) {
    double price = 0;
    for (std::size_t r = 0; r < resources_.size(); ++r) price += ask.prices[r] * resources_[r].usedBy(option);
    assert(std::isfinite(price) && price >= 0);
    prices_.push_back(batch_ * price / static_cast<double>(option.mostSamples));
  }
}

/// No stage with a block is faster than one block alone. Infinite: no option holds a block.
double PriceSearch::leastPace() const {
  double least = kNever;
  for (std::size_t o = 0; o < options_.options().size(); ++o) {
    if (prices_[o] == kNever) continue;
    for (const UnitRange unit : {UnitRange{1, 2}, UnitRange{2, 3}}) {
      const double time = options_.time(o, unit, 1);
      least = std::min(least, measure_ == Measure::ClosedForm ? time : time - options_.forward(o, unit));
    }
  }
  return least;
}

void PriceSearch::sketch(const Ask& ask, const OnPath& onPath) {
  result_ = {.bound = 0, .reached = kNever, .best = {}};
  onPath_ = &onPath;
  setAsk(ask);
  const double least = leastPace();
  double cheapest = kNever;
  for (double pace = least; least < kNever && pace < least * 1e6; pace *= kSketchSteps) {
    const Node node{
        .pace = pace, .mostPace = pace * kSketchSteps, .least = mostStages_, .most = kManyMicroBatches, .mostSync = kNever};
    const Shortest found = shortest(node, pace);
    offer(found, node);
    if (found.path.empty()) continue;
    // Slower paces only lengthen the fill once a stage holds the model.
    if (found.path.size() == 1 && found.cost > 4 * cheapest) break;
    cheapest = std::min(cheapest, found.cost);
  }
  onPath_ = nullptr;
}

void PriceSearch::fit(std::span<const int> amounts, std::int64_t samples, int microBatch, int mostDp,
                      const std::function<bool()>& stopped, const OnPath& onPath) {
  const std::vector<StageOption>& options = options_.options();
  const auto count = static_cast<int>(std::min<std::int64_t>((samples + microBatch - 1) / microBatch, 1'000'000'000));
  ask_ = {};
  prices_.assign(options.size(), kNever);
  std::vector<int> dps(options.size(), 0);
  double least = kNever;
  for (std::size_t o = 0; o < options.size(); ++o) {
    const std::int64_t dp = microBatch / options[o].samples;
    bool fits = microBatch % options[o].samples == 0 && dp <= mostDp;
    for (std::size_t r = 0; r < resources_.size() && fits; ++r) fits = resources_[r].usedBy(options[o]) * dp <= amounts[r];
    if (!fits) continue;
    dps[o] = static_cast<int>(dp);
    prices_[o] = 0;
    least = std::min(least, options_.time(o, {1, 2}, 1));
  }
  if (least == kNever) return;

  std::vector<double> weights;
  /// A path that keeps to the pace and the amounts; empty: there is none, or none was found.
  const auto pathWithin = [&](double pace) {
    const Node node{.pace = pace, .mostPace = pace, .least = count, .most = count, .mostSync = kNever};
    weights.assign(amounts.size(), 1.0);
    for (int step = 0; step < kFitSteps && !stopped(); ++step) {
      double sum = 0;
      for (std::size_t r = 0; r < amounts.size(); ++r) sum += amounts[r] > 0 ? weights[r] : 0.0;
      for (std::size_t o = 0; o < options.size(); ++o) {
        if (dps[o] == 0) continue;
        prices_[o] = 0;
        for (std::size_t r = 0; r < amounts.size(); ++r) {
          if (amounts[r] > 0) prices_[o] += weights[r] / sum * resources_[r].usedBy(options[o]) * dps[o] / amounts[r];
        }
      }
      // At first the least fill; where that takes too much, the amounts decide, and the fill between paths that are about as
      // good.
      const Shortest found = shortest(node, step == 0 ? 0.0 : kFitDevices * count * pace);
      if (found.path.empty() || (step > 0 && found.share > 1 + 1e-9 + kFitSlack)) return Path{};
      std::vector<int> used(amounts.size(), 0);
      for (const PathStage& stage : found.path) {
        for (std::size_t r = 0; r < amounts.size(); ++r)
          used[r] += resources_[r].usedBy(options[stage.option]) * dps[stage.option];
      }
      bool fits = true;
      for (std::size_t r = 0; r < amounts.size(); ++r) {
        if (amounts[r] == 0) continue;
        fits = fits && used[r] <= amounts[r];
        if (step > 0) weights[r] *= std::exp(2.0 * (static_cast<double>(used[r]) / amounts[r] - 1.0));
      }
      onPath(found.path, count);
      if (fits) return found.path;
    }
    return Path{};
  };
  // With few micro-batches the fill is what counts, whatever the pace.
  static_cast<void>(pathWithin(kSlowestPace));
  double high = least;
  while (pathWithin(high).empty()) {
    least = high;
    high *= 2;
    if (high > least * 1e9 || high > 1e9 || stopped()) return;
  }
  while (high > least * kFitTolerance && !stopped()) {
    const double middle = std::sqrt(least * high);
    const Path path = pathWithin(middle);
    if (path.empty()) least = middle;
    else high = std::min(middle, timeOf(options_, path, measure_, count).pace);
  }
}

PriceSearch::Result PriceSearch::run(const Ask& ask, const Limits& limits, const OnPath& onPath) {
  result_ = {.bound = 0, .reached = kNever, .best = {}};
  onPath_ = &onPath;
  setAsk(ask);
  const double leastPace = this->leastPace();
  const auto later = [](const Node& a, const Node& b) { return a.bound > b.bound; };
  std::priority_queue<Node, std::vector<Node>, decltype(later)> open(later);
  if (leastPace > 0 && leastPace < kNever) {
    const int most = static_cast<int>(std::min(batch_, 1e9));
    // With one micro-batch there is only the fill.
    open.push({.pace = leastPace, .mostPace = kNever, .mostSync = kNever, .bound = leastPace * kRoundingMargin});
    double pace = leastPace;
    for (int i = 0; i < kMostPaceDoublings; ++i, pace *= 2) {
      for (int least = 2; least <= most; least *= 2) {
        const bool isLast = least >= kManyMicroBatches;
        const int end = isLast ? most : std::min(most, 2 * least - 1);
        // Every pipeline fills at least one pace; of a smaller last micro-batch nothing is known yet.
        const int full = ask.ragged ? least - 1 : least;
        open.push({.pace = pace,
                   .mostPace = 2 * pace,
                   .least = least,
                   .most = end,
                   .mostSync = kNever,
                   .bound = full * pace * kRoundingMargin});
        if (isLast) break;
      }
    }
  }
  double closed = kNever;
  while (true) {
    result_.bound = open.empty() ? closed : std::min(closed, open.top().bound);
    const double target = std::min(limits.enough, result_.reached * (1 - limits.tolerance));
    if (open.empty() || result_.bound >= target || closed <= result_.bound || result_.reached < limits.atLeast ||
        result_.paths > limits.mostPaths || limits.stopped())
      break;
    Node node = open.top();
    open.pop();
    if (!node.evaluated) {
      evaluate(node, target, limits.stopped);
      open.push(node);
      continue;
    }
    const bool oneCount = node.least == node.most || node.least >= kManyMicroBatches;
    const bool onePace = node.most == 1 || node.mostPace / node.pace < kSamePace;
    const bool oneSync = node.syncSlack <= kSameSync * node.bound;
    if (oneCount && onePace && oneSync) {
      closed = std::min(closed, node.bound);
      continue;
    }
    // What is widest is halved.
    const double countSlack = oneCount ? -1.0 : 0.5 * (node.most - node.least) * node.pace;
    const double paceSlack = onePace ? -1.0 : std::max(node.paceSlack, 0.25 * (node.least - 1) * (node.mostPace - node.pace));
    const double syncSlack = oneSync ? -1.0 : node.syncSlack;
    Node other = node;
    node.evaluated = other.evaluated = false;
    if (syncSlack >= countSlack && syncSlack >= paceSlack) {
      const double middle = (node.sync + node.pathSync) / 2;
      node.mostSync = other.sync = middle;
    } else if (countSlack >= paceSlack) {
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
  onPath_ = nullptr;
  return result_;
}

}  // namespace evenkeel::optimal
