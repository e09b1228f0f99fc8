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

/// fill + (M - 1) pace, by a measure.
struct PathTime {
  double fill = 0, pace = 0;  // infinite: does not fit
  [[nodiscard]] double of(double microBatches) const { return fill + (microBatches - 1) * pace; }
};
[[nodiscard]] PathTime timeOf(const StageOptions& options, const Path& path, Measure measure, int microBatches);

/// The least time of any pipeline that must train its share of the batch (optimal.md 3). Device kinds have prices; a pipeline whose
/// devices cost c (of 1 in all) trains at least batch x c samples in some pipeline of every plan, so
///     T >= min over pipelines p of fill_p + (M_p - 1) pace_p,  M_p >= batch x c_p / b_p.
/// For pace in [s, s'] and M in [m, m'] this is a shortest path over (stages behind, units done); branching on both closes the gap.
/// A mixed or unevenly shared stage costs per sample at least what its cheapest replica costs, and is no faster than that.
class PriceSearch {
 public:
  /// `ragged`: a last micro-batch that is smaller counts for nothing, so that only full ones are sure (Schedule with b > 1).
  PriceSearch(const StageOptions& options, Measure measure, bool ragged, std::int64_t batch, int mostStages);

  struct Result {
    double bound = 0;    // no pipeline that earns its prices is faster
    double reached = 0;  // by the best path found; infinite: none
    Path best;
    std::int64_t nodes = 0;
  };
  using OnPath = std::function<void(const Path&, int microBatches)>;
  /// When a run ends: at a relative gap of `tolerance`, when the bound reaches `enough` or can no longer reach `atLeast`, after
  /// `mostPaths` shortest paths, or when `stopped`.
  struct Limits {
    double tolerance = 0, enough = 0, atLeast = 0;
    std::int64_t mostPaths = 0;
    std::function<bool()> stopped;
  };
  /// prices[kind]: of one device, finite and >= 0. `onPath` sees the shortest path of each node.
  [[nodiscard]] Result run(std::span<const double> prices, const Limits& limits, const OnPath& onPath);
  /// Shows `onPath` a pipeline of few to one of many stages, any number of micro-batches in each. A start, no bound.
  void sketch(std::span<const double> prices, const OnPath& onPath);

 private:
  struct Node {
    double pace = 0, mostPace = 0;
    int least = 1, most = 1;  // micro-batches
    double bound = 0;
    bool evaluated = false;
  };
  struct Shortest {
    double cost = 0;  // infinite: there is no path
    Path path;
    double share = 0;  // micro-batches that its prices ask of it
  };
  /// Least cost of a stage by its number of units.
  struct MergedRow {
    std::array<std::vector<double>, 2> inner;
    std::vector<double> first;
  };
  [[nodiscard]] Shortest shortest(const Node& node, double perShare);
  void merge(const Node& node, int stages, double perShare);
  void addStages(int stages);
  [[nodiscard]] Path pathOf(int stages, const Node& node, double perShare) const;
  [[nodiscard]] double addedCost(std::size_t option, double perShare) const;
  void setPrices(std::span<const double> prices);
  [[nodiscard]] double leastPace() const;
  void evaluate(Node& node, double enough);
  void offer(const Shortest& found, const Node& node);

  const StageOptions& options_;
  Measure measure_;
  double late_;  // micro-batches that may be missing
  double batch_;
  int unitCount_, mostStages_;
  std::vector<std::array<std::vector<double>, 3>> forwards_;  // by option: of 1, 2, ... units; [0], [1] as Times::inner, [2] first

  std::vector<double> prices_;     // of an option, in micro-batches that it asks of its pipeline
  std::vector<MergedRow> merged_;  // by stages - 1
  std::vector<std::array<std::vector<double>, 2>> value_;  // [stages - 1][parity of the unit][unit / 2]: cost of the units from there
  std::int64_t shortestPaths_ = 0;
  Result result_;
  const OnPath* onPath_ = nullptr;
};

}  // namespace evenkeel::optimal
