// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QLabel>

namespace evenkeel::gui {

/// One line of plain text that gives way where there is little room: its end becomes "…", and the tool tip has all of it.
class ElidedLabel final : public QLabel {
 public:
  using QLabel::QLabel;
  [[nodiscard]] QSize minimumSizeHint() const override;
  [[nodiscard]] bool isElided() const;

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
};

}  // namespace evenkeel::gui
