// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "core/search/search.h"

namespace evenkeel::cli {

/// Shows a search on stderr (one line that is rewritten on a terminal, plain lines elsewhere) and, if asked, writes every event
/// as a line of JSON: {"seconds", "event": "phase"|"incumbent"|"bound"|"counters"|"point", ...}. A replay of that file shows the search.
class SearchProgress final : public SearchObserver {
 public:
  explicit SearchProgress(std::string planner);
  [[nodiscard]] Result<void> writeEventsTo(const std::filesystem::path& file);

  void onPhase(std::string_view phase) override;
  void onIncumbent(const Incumbent& incumbent) override;
  void onBound(Seconds bound) override;
  void onCounters(const Counters& counters) override;
  void onPoint(const SearchPoint& point) override;
  /// Ends the rewritten line.
  void finish();
  /// Why the file of events lacks some; nothing if it has all.
  [[nodiscard]] Result<void> eventsWritten() const;

 private:
  void event(std::string_view kind, Json fields);
  void show(bool isMilestone);
  [[nodiscard]] double elapsed() const;

  std::string planner_, phase_;
  bool onTerminal_ = false;
  std::optional<Seconds> best_, bound_;
  Counters counters_;
  std::ofstream events_;
  std::string eventsFailure_;  // of the first write that failed
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace evenkeel::cli
