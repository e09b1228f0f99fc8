// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStackedWidget>

namespace evenkeel::gui {

/// Pages of which one is seen. It needs the room of that one, not of the largest. How high they are does not depend on how wide they are: else every layout around the stack asks all
/// pages, hidden ones too, for several widths whenever a label changes, and each answer breaks wrapped text into lines anew.
class Stack final : public QStackedWidget {
 public:
  explicit Stack(QWidget* parent = nullptr) : QStackedWidget(parent) {
    connect(this, &QStackedWidget::currentChanged, this, &QWidget::updateGeometry);
  }
  [[nodiscard]] bool hasHeightForWidth() const override { return false; }
  [[nodiscard]] QSize minimumSizeHint() const override {
    const QWidget* seen = currentWidget();
    return seen == nullptr ? QSize() : seen->minimumSizeHint().expandedTo(seen->minimumSize());
  }
};

}  // namespace evenkeel::gui
