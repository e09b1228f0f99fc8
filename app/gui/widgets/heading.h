// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QLabel>

namespace evenkeel::gui {

/// A bold line above a part of a page.
[[nodiscard]] inline QLabel* heading(const QString& words) {
  auto* label = new QLabel(words);
  QFont font = label->font();
  font.setBold(true);
  label->setFont(font);
  return label;
}

/// The same above some rows of a form.
[[nodiscard]] inline QLabel* formHeading(const QString& words) {
  QLabel* label = heading(words);
  label->setContentsMargins(0, 8, 0, 0);
  return label;
}

}  // namespace evenkeel::gui
