// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <functional>
#include <span>
#include <vector>

#include "core/search/optimal/stage_options.h"

namespace evenkeel::optimal {

/// Stage of a path: the option that runs the units.
struct PathStage {
  std::size_t option = 0;
  UnitRange units;
  bool operator==(const PathStage&) const = default;
};
/// A pipeline by its stages; which micro-batch it trains is open where options of unlike samples meet.
using Path = std::vector<PathStage>;

/// What the time of a pipeline is taken for.
enum class Measure {
  /// T = sum_i t_i + (M - 1) max_i t_i with t = forward + backward + send (algorithms.md 4).
  ClosedForm,
  /// No 1F1B schedule is faster. Stage i cannot run its first backward before the first micro-batch has passed all stages forward
  /// and those behind i backward; until then it has run min(P - i, M) forwards; then M backwards and the other forwards are left,
  /// and the last gradient passes the stages before it:
  ///     T >= sum_j (f_j + b_j + 2 send_j) + (M - 1) b_i + (M - min(P - i, M)) f_i      for every i
  Schedule,
};

/// Which stages' gradient sync counts: of a bound's pipelines any, of those that are planned the first one's, since the others
/// sync while it still works.
enum class Synced { AnyStage, FirstStage };

/// What the first of so many stages holds of so many micro-batches at least. Where it holds all, the last one may be a small part of one;
/// the closed form knows full ones only.
[[nodiscard]] int inFlightMicroBatches(Measure measure, int stages, int microBatches);

/// fill + (M - 1) pace, by a measure.
struct PathTime {
  double fill = 0, pace = 0;  // infinite: does not fit
  [[nodiscard]] double of(double microBatches) const { return fill + (microBatches - 1) * pace; }
};
[[nodiscard]] PathTime timeOf(const StageOptions& options, const Path& path, Measure measure, int microBatches);

/// What some pipeline of every plan must do: train at least batch x (price of what it uses) samples, where all resources together
/// cost 1.
struct Ask {
  std::vector<double> prices;  // of a device, by resource; finite and >= 0
  /// Measure::Schedule: how a smaller last micro-batch is counted. Where it is the part r
  /// of a full one, T is at least that without it, and at least that with a full one less
  /// (1 - r) (backwards of the stages before i, with their sends): of the two at most w^2 pace + (1 - w)^2 (those) is lost, any
  /// w; the backwards of stages of one sample are not among them. `partsShrink`: r of a micro-batch takes at least the part r of
  /// its time. If not sure, only w = 1 is used.
  bool ragged = false, partsShrink = false;
};

/// The least time of any pipeline that must do what is asked (optimal.md 3), and of the gradient sync of its largest stage:
///     T >= min over pipelines p of fill_p + (M_p - 1) pace_p + sync_p,  M_p >= batch x price_p / b_p.
/// For pace, M and sync within intervals this is a shortest path over (stages behind, units done); branching on the three closes
/// the gap. A mixed or unevenly shared stage costs per sample at least what its cheapest replica costs, and is no faster.
class PriceSearch {
 public:
  /// syncRates[kind]: seconds of sync for each parameter that a device stores; empty: sync is left out.
  /// Refers to its arguments, which must outlive it.
  PriceSearch(const StageOptions& options, std::span<const Resource> resources, Measure measure, std::int64_t batch,
              int mostStages, std::vector<double> syncRates, Synced synced = Synced::AnyStage);

  struct Result {
    double bound = 0;    // no pipeline that does what is asked is faster
    double reached = 0;  // by the best path found; infinite: none
    Path best;
    std::int64_t paths = 0;  // shortest paths that were sought
  };
  using OnPath = std::function<void(const Path&, int microBatches)>;
  /// When a run ends: at a relative gap of `tolerance`, when the bound reaches `enough` or can no longer reach `atLeast`, after
  /// `mostPaths` shortest paths, or when `stopped`.
  struct Limits {
    double tolerance = 0, enough = 0, atLeast = 0;
    std::int64_t mostPaths = 0;
    std::function<bool()> stopped;
  };
  /// `onPath` sees the shortest path of each node.
  [[nodiscard]] Result run(const Ask& ask, const Limits& limits, const OnPath& onPath);
  /// Shows `onPath` a pipeline of few to one of many stages, any number of micro-batches in each. A start, no bound.
  void sketch(const Ask& ask, const OnPath& onPath);

  /// A pipeline on no more than `amounts` of each resource that trains `samples` in micro-batches of `microBatch`, of about the
  /// least pace: shows `onPath` what it finds on the way. Halves the interval of the pace; for each, weights of the resources are
  /// moved towards those of which a path takes too many, until one fits or no path can.
  void fit(std::span<const int> amounts, std::int64_t samples, int microBatch, int mostDp, const std::function<bool()>& stopped,
           const OnPath& onPath);

  [[nodiscard]] Measure measure() const { return measure_; }
  void setSyncRates(std::vector<double> rates);
  /// Of the path's largest stage that counts.
  [[nodiscard]] double syncOf(const Path& path) const;

 private:
  struct Node {
    double pace = 0, mostPace = 0;
    int least = 1, most = 1;        // micro-batches
    double sync = 0, mostSync = 0;  // seconds
    double bound = 0;
    bool evaluated = false;
    double paceSlack = 0, syncSlack = 0, pathSync = 0;  // of its shortest path: what branching may gain
  };
  struct Shortest {
    double cost = 0;  // infinite: there is no path
    Path path;
    double share = 0;  // micro-batches that are asked of it
  };
  /// Least cost of a stage by its number of units.
  struct MergedRow {
    std::array<std::vector<double>, 2> inner;
    std::vector<double> first;
  };
  [[nodiscard]] Shortest shortest(const Node& node, double perShare, double forgiven = 0, double late = 0);
  void merge(MergedRow& row, const Node& node, int inFlight, double ahead, double perShare, double forgiven);
  void relaxBefore();
  void addStages(int stages);
  [[nodiscard]] Path pathOf(int stages, const Node& node, double perShare, double forgiven) const;
  [[nodiscard]] double addedCost(std::size_t option, double perShare, double forgiven) const;
  [[nodiscard]] double forgivenOf(std::size_t option, double forgiven) const;
  [[nodiscard]] double aheadOf(int stages, const Node& node) const;
  [[nodiscard]] bool isWithin(std::size_t option, std::size_t part, std::span<const double> times, std::size_t count,
                              const Node& node, double ahead) const;
  void setAsk(const Ask& ask);
  [[nodiscard]] double leastPace() const;
  void evaluate(Node& node, double enough, const std::function<bool()>& stopped);
  void offer(const Shortest& found, const Node& node);

  const StageOptions& options_;
  std::span<const Resource> resources_;
  Measure measure_;
  double batch_;
  int unitCount_, mostStages_;
  // By option, of 1, 2, ... units; [0], [1] as Times::inner, [2] first, [3] last.
  std::vector<std::array<std::vector<double>, 4>> forwards_, syncs_;
  std::vector<double> syncRates_;
  Synced synced_;
  std::vector<double> leastTimes_;  // by option, of any stage

  Ask ask_;
  std::vector<double> prices_;       // of an option, in micro-batches that are asked of its pipeline; infinite: not allowed
  std::vector<std::size_t> active_;  // options that may be a stage of the node
  std::vector<std::array<std::size_t, 3>>
      counts_;                                 // by option: units of each part that keep within the node, of the last merged row
  std::vector<MergedRow> merged_;              // by stages - 1
  MergedRow freeRow_;                          // as if only one micro-batch were in flight
  std::array<std::vector<double>, 2> before_;  // [parity of the unit][unit / 2]: no stages for the units before it cost less
  std::vector<std::array<std::vector<double>, 2>>
      value_;  // [stages - 1][parity of the unit][unit / 2]: cost of the units from there
  Result result_;
  const OnPath* onPath_ = nullptr;
};

}  // namespace evenkeel::optimal
