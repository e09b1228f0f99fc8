// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <string>

#include "app/gui/widgets/background.h"
#include "launcher/job/job.h"

class QLabel;
class QPushButton;
class QTreeWidget;

namespace evenkeel::gui {

/// "running", "finished", "failed", "stopped", "preparing", with a sign.
[[nodiscard]] QString stateText(JobState state);
[[nodiscard]] QColor stateColour(JobState state, const QPalette& palette);

/// All runs that this person launched from this machine, newest first, as the history knows them.
class RunList final : public QWidget {
  Q_OBJECT

 public:
  explicit RunList(QWidget* parent = nullptr);
  /// Reads the history again on another thread, see reloaded(); a failure stands in place of the rows.
  void reload();
  [[nodiscard]] const std::vector<RunRow>& rows() const { return rows_; }
  /// The runs of the open project; they stand out.
  void setOwn(std::vector<std::string> own);

 signals:
  void opened(const std::string& run);
  void reloaded();

 private:
  void changeEvent(QEvent* event) override;
  void take(const Result<std::vector<RunRow>>& rows);
  void fill();
  Background background_;
  std::vector<RunRow> rows_;
  std::vector<std::string> own_;
  QTreeWidget* list_;
  QLabel* note_;
  QPushButton* open_;
};

}  // namespace evenkeel::gui
