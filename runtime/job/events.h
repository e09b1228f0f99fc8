// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <mutex>
#include <string>

#include "core/base/json.h"

namespace evenkeel {

/// Who is to blame when a worker ends early: it itself, or a peer that left or fell silent.
enum class Cause { Own, Peer };

/// The worker's events (resources/docs/protocol.md), one JSON object a line on a file descriptor, each written at once.
/// Safe to call from several threads.
class EventWriter {
 public:
  explicit EventWriter(int descriptor) : descriptor_(descriptor) {}

  /// `fields` follow the name of the event.
  void write(const std::string& event, const Json& fields);

  void warning(const std::string& text) { write("warning", {{"text", text}}); }
  void info(const std::string& text) { write("log", {{"level", "info"}, {"text", text}}); }
  void failed(const std::string& reason, std::int64_t lastStep, Cause cause) {
    write("failed", {{"reason", reason}, {"last_step", lastStep}, {"cause", cause == Cause::Own ? "own" : "peer"}});
  }

 private:
  int descriptor_;
  std::mutex mutex_;
};

}  // namespace evenkeel
