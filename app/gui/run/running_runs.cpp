// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/run/running_runs.h"

#include <utility>

#include "app/gui/widgets/quantity_text.h"

namespace evenkeel::gui {

namespace {

/// Nothing if the history cannot be read: the list of runs says why.
std::vector<JobStatus> askedNow(const std::stop_token& stop) {
  std::vector<JobStatus> running;
  auto launcher = Launcher::open();
  const auto rows = launcher ? launcher->runs() : Result<std::vector<RunRow>>(launcher.error());
  if (!rows) return running;
  for (const RunRow& row : *rows) {
    if ((row.state != JobState::Running && !row.isQueued) || stop.stop_requested()) continue;
    if (auto status = launcher->statusOf(row.run); status && !hasEnded(status->state)) running.push_back(*std::move(status));
  }
  return running;
}

}  // namespace

void RunningRuns::refresh() {
  if (std::exchange(isRefreshing_, true)) return;
  worker_ = std::jthread([this](const std::stop_token& stop) {
    QMetaObject::invokeMethod(
        this,
        [this, running = askedNow(stop)]() mutable {
          isRefreshing_ = false;
          runs_ = std::move(running);
          emit refreshed();
        },
        Qt::QueuedConnection);
  });
}

QString titleOf(const JobStatus& run) {
  const QString name = QString::fromStdString(run.run);
  return run.steps > 0 ? RunningRuns::tr("%1, step %2").arg(name, exactText(run.steps)) : name;
}

}  // namespace evenkeel::gui
