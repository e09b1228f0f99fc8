// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

#include "app/gui/run/job_session.h"

class QLabel;
class QToolButton;
class QTreeWidget;

namespace evenkeel::gui {

/// What was looked at before a start, a row each with sign, finding and remedy. Folds to one line when all is good; unfolds by
/// itself at the first objection. Bytes that are being copied stand in the headline.
class PreflightView final : public QWidget {
  Q_OBJECT

 public:
  explicit PreflightView(QWidget* parent = nullptr);
  void show(const SessionState& state);
  [[nodiscard]] bool isFolded() const;

 private:
  void changeEvent(QEvent* event) override;
  void setFolded(bool isFolded);
  void fill(const std::vector<PreflightRow>& rows);
  [[nodiscard]] QString headline(const SessionState& state, std::size_t objections) const;

  QToolButton* fold_;
  QLabel* headline_;
  QTreeWidget* list_;
  std::vector<PreflightRow> rows_;
  bool isChosen_ = false;  // a person folded or unfolded it
};

/// "copying to b3: 1.2 of 3.2 GiB, and to 2 other nodes"; empty when nothing is being copied.
[[nodiscard]] QString copyText(const SessionState& state);
/// Of all bytes that are being copied; below 0 when there are none.
[[nodiscard]] double copyFraction(const SessionState& state);

}  // namespace evenkeel::gui
