// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QLineEdit>
#include <QWidget>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "app/gui/widgets/heading.h"
#include "app/gui/window/page.h"

class QFormLayout;
class QLabel;
class QToolButton;

namespace evenkeel::gui {

inline constexpr double kLeastGbs = 1e-9, kMostOfAny = 1e9;  // what a cluster file can hold

/// What all of the things (at least one) have in common; nothing if they differ.
template <class T, class Get>
auto common(const std::vector<const T*>& things, const Get& get) -> std::optional<std::decay_t<decltype(get(*things.front()))>> {
  auto value = get(*things.front());
  for (const T* thing : things) {
    if (get(*thing) != value) return std::nullopt;
  }
  return value;
}

/// The rows of an inspector form.
[[nodiscard]] QFormLayout* makeForm(QWidget* widget);

/// A number with its unit, of one thing or of many. Where they differ it says "(mixed)"; what is typed is meant for all.
/// A value unlike that of the device table is bold, and a button brings that one back.
class NumberField final : public QWidget {
  Q_OBJECT

 public:
  NumberField(const QString& name, const QString& title, const QString& unit, double least, double most,
              QWidget* parent = nullptr);
  /// Nothing: they differ. isUnlike: at least one is not what its device type has.
  void setValue(std::optional<double> value, bool isUnlike = false);
  /// What the number means, or where the usual one comes from.
  void setSource(const QString& source);
  [[nodiscard]] QLineEdit* edit() { return edit_; }

 signals:
  void edited(double value);
  void resetAsked();

 private:
  void finish();
  const QString title_;
  const double least_, most_;
  std::optional<double> value_;
  QLineEdit* edit_;
  QToolButton* reset_;
};

/// A text of one thing or of many; "(mixed)" where they differ. Speaks when the person has finished.
class TextField final : public QLineEdit {
  Q_OBJECT

 public:
  TextField(const QString& name, const QString& title, const QString& placeholder, QWidget* parent = nullptr);
  void setValue(const std::optional<QString>& value);

 signals:
  void edited(const QString& value);

 private:
  const QString placeholder_;
  QString shown_;
};

/// Renames a machine or switch as one undo step and selects it; what is refused is said, and the field shows the old name again.
void renameItem(Workspace& workspace, TextField& field, const std::string& from, const QString& to);

}  // namespace evenkeel::gui
