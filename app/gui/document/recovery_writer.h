// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "core/plan/project.h"

namespace evenkeel::gui {

/// Keeps one recovery file, written on a thread of its own so that neither a large project nor a slow disk holds up the window.
/// What is handed over while another version is being written replaces it: the newest one always reaches the file.
class RecoveryWriter {
 public:
  explicit RecoveryWriter(std::filesystem::path file);
  /// The file goes: whoever ends in good order needs no recovery.
  ~RecoveryWriter();
  RecoveryWriter(const RecoveryWriter&) = delete;
  RecoveryWriter& operator=(const RecoveryWriter&) = delete;

  /// originalPath: of the document that the file stands for; empty if it was never saved. A full disk is not reported: it must
  /// not disturb the work that is going on, and saving says it aloud.
  void write(std::shared_ptr<const Project> project, std::string originalPath);
  /// Waits until all that was handed over is in the file.
  void finish();
  /// Waits for a write that is under way; afterwards there is no file.
  void remove();

  /// Whether a living writer keeps that file. A lock says so, which the system gives back when a process ends, however it ends: a process id
  /// may be another's by then.
  [[nodiscard]] static bool isOwned(const std::filesystem::path& file);
  /// Deletes the file and what stands beside it.
  static void discard(const std::filesystem::path& file);

 private:
  struct Version {
    std::shared_ptr<const Project> project;
    std::string originalPath;
  };
  void work(const std::stop_token& stop);
  void writeNow(const Version& version);

  const std::filesystem::path file_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<Version> next_;
  bool isWriting_ = false;
  int owner_ = -1;  // the locked file; open from the first write on
  std::jthread thread_;
};

}  // namespace evenkeel::gui
