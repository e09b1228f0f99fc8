// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <QWidget>
#include <functional>
#include <utility>
#include <vector>

namespace evenkeel::gui {

/// What an empty page shows: why it is empty, and the next step as a button.
class EmptyState final : public QWidget {
  Q_OBJECT

 public:
  EmptyState(const QString& title, const QString& text, std::vector<std::pair<QString, std::function<void()>>> actions, QWidget* parent = nullptr);
};

}  // namespace evenkeel::gui
