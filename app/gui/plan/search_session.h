// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "app/gui/plan/search_board.h"

namespace evenkeel::gui {

/// What one search is asked.
struct SearchRequest {
  const Planner* planner = nullptr;  // of the catalogue
  Problem problem;
  PlannerOptions options;
  Budget budget;
};

/// Runs one planner at a time on a thread of its own that yields to the window. Views read snapshot() with a timer; only the
/// beginning and the end are signals.
class SearchSession final : public QObject {
  Q_OBJECT

 public:
  explicit SearchSession(QObject* parent = nullptr);
  /// Stops and waits for the planners: at most some 50 ms.
  ~SearchSession() override;

  /// Ends a search that still runs, whose result is then dropped, and begins this one.
  void start(SearchRequest request);
  /// Shows a recorded search instead; ends a running one. The result is its last plan, or why there is none.
  void replay(const QString& file);
  /// Asks the planner to stop. It keeps the best plan until then; finished() follows within some 50 ms.
  void stop();
  /// Stops without a result and without waiting: nothing more is heard of this search.
  void abandon();

  [[nodiscard]] bool isRunning() const { return isRunning_; }
  [[nodiscard]] SearchSnapshot snapshot() const;
  /// Of the last search that finished; nothing before, and while one runs.
  [[nodiscard]] const std::optional<Result<Plan>>& result() const { return result_; }

 signals:
  void started();
  void finished();

 private:
  struct Run;
  void finish(int number, Result<Plan> result);

  std::unique_ptr<Run> run_;                    // board and thread of the newest search
  std::vector<std::unique_ptr<Run>> abandoned_;  // their planners were asked to stop and have not yet
  std::optional<Result<Plan>> result_;
  int number_ = 0;  // of the newest search: a late end of an older one is ignored
  bool isRunning_ = false;
};

/// A number for a job of the Jobs panel that no other search has.
[[nodiscard]] int nextSearchJob();

}  // namespace evenkeel::gui
