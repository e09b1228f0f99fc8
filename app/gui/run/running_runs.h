// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <thread>
#include <vector>

#include "launcher/job/job.h"

namespace evenkeel::gui {

/// Which runs of the history go on. Their nodes are asked on a thread of its own; what does not answer within a few seconds, or
/// would need a person to log in, is left as it was known.
class RunningRuns final : public QObject {
  Q_OBJECT

 public:
  using QObject::QObject;
  /// Does nothing while a refresh is under way.
  void refresh();
  /// As of the last refresh that ended.
  [[nodiscard]] const std::vector<JobStatus>& runs() const { return runs_; }

 signals:
  void refreshed();

 private:
  std::vector<JobStatus> runs_;
  bool isRefreshing_ = false;
  std::jthread worker_;
};

/// "20261130-120000-abcd, step 8120".
[[nodiscard]] QString titleOf(const JobStatus& run);

}  // namespace evenkeel::gui
