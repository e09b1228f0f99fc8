// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFrame>
#include <functional>
#include <utility>
#include <vector>

#include "core/base/result.h"

class QLabel;
class QPainter;
class QHBoxLayout;

namespace evenkeel::gui {

/// A line on top of the page that says one thing at a time, instead of a dialog: the newest wins. It never takes the focus.
class MessageLine final : public QFrame {
  Q_OBJECT

 public:
  enum class Kind { Information, Warning, Error };
  using Action = std::pair<QString, std::function<void()>>;

  explicit MessageLine(QWidget* parent = nullptr);
  /// At most two actions are shown. The text can be selected and copied.
  void show(Kind kind, const QString& text, std::vector<Action> actions = {});
  /// An error with its place and way out.
  void showError(const Error& error, std::vector<Action> actions = {});
  void dismiss();
  /// The person has gone on: an error that offers nothing to press is over.
  void settle();
  [[nodiscard]] QString text() const;

 signals:
  void shown(int kind, const QString& text);  // for the history in Problems

 private:
  void restyle();
  void paintEvent(QPaintEvent* event) override;
  QLabel* sign_;
  QLabel* text_;
  QHBoxLayout* buttons_;
  Kind kind_ = Kind::Information;
  void changeEvent(QEvent* event) override;
};

/// A faint ground with a strong bar at its left edge: what messages stand on.
void paintMessageGround(QPainter& painter, const QRect& area, QColor colour, const QPalette& palette);

}  // namespace evenkeel::gui
