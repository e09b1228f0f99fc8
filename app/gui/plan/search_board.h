// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <vector>

#include "core/search/search.h"

namespace evenkeel::gui {

/// What a search has shown until now, as a plain value.
struct SearchSnapshot {
  struct Point {
    Seconds found, iteration;
    std::string finder;
    bool operator==(const Point&) const = default;
  };
  struct Step {
    std::string name;
    Seconds begin, end;  // of the running step: until now
    bool operator==(const Step&) const = default;
  };
  std::string planner;
  std::vector<Point> curve;  // of the incumbents, ever faster
  std::optional<Seconds> bound, timeLimit;
  std::vector<Step> steps;
  Counters counters;
  double evaluatedPerSecond = 0;
  std::shared_ptr<const Plan> best;  // null before the first incumbent
  Seconds elapsed;
  bool isRunning = false;

  /// 1 - bound / best; nothing while either is missing.
  [[nodiscard]] std::optional<double> gap() const;
};

/// Where a search writes and a window reads: all is under one mutex, so that a search that runs through 100,000 candidates a
/// second never waits for the window, which reads some 25 times a second. Times come with each event, so that a recorded search
/// can be written as well.
class SearchBoard {
 public:
  void begin(std::string planner, std::optional<Seconds> timeLimit);
  void addStep(Seconds at, std::string_view name);
  void addIncumbent(Seconds at, Seconds iteration, std::string finder, std::shared_ptr<const Plan> plan);
  void setBound(Seconds bound);
  void setCounters(Seconds at, Counters counters);
  void end(Seconds at);
  /// A copy of all; `now` is when, since the search began. It copies the curve: some microseconds.
  [[nodiscard]] SearchSnapshot read(Seconds now) const;

 private:
  mutable std::mutex mutex_;
  SearchSnapshot state_;
};

/// Hands what a planner tells on to a board, with the time since it was made.
class BoardWriter final : public SearchObserver {
 public:
  explicit BoardWriter(SearchBoard& board) : board_(board) {}
  void onPhase(std::string_view phase) override;
  void onIncumbent(const Incumbent& incumbent) override;
  void onBound(Seconds bound) override;
  void onCounters(const Counters& counters) override;
  [[nodiscard]] Seconds elapsed() const;

 private:
  SearchBoard& board_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// Writes a file of `evenkeel-cli plan --events` onto a board: the same curve, bound, steps and counters as the search had. The
/// last incumbent's plan comes back; an error names the line that is wrong, or says that no plan was found.
[[nodiscard]] Result<Plan> replayEvents(const std::filesystem::path& file, SearchBoard& board);

/// What a finished plan remembers of its search: planner, incumbent curve, bound and counters. Without `plan.search` it is empty.
[[nodiscard]] SearchSnapshot rememberedSearch(const Plan& plan);

}  // namespace evenkeel::gui
