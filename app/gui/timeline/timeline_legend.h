// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

namespace evenkeel::gui {

/// Says which colour of a timeline is what.
class TimelineLegend final : public QWidget {
  Q_OBJECT

 public:
  explicit TimelineLegend(QWidget* parent = nullptr);

 protected:
  void paintEvent(QPaintEvent* event) override;
};

}  // namespace evenkeel::gui
