// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStackedWidget>

namespace evenkeel::gui {

/// Pages of which one is seen. How high they are does not depend on how wide they are: else every layout around the stack asks all
/// pages, hidden ones too, for several widths whenever a label changes, and each answer breaks wrapped text into lines anew.
class Stack final : public QStackedWidget {
 public:
  using QStackedWidget::QStackedWidget;
  [[nodiscard]] bool hasHeightForWidth() const override { return false; }
};

}  // namespace evenkeel::gui
