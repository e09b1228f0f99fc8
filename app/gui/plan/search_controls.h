// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QKeySequence>
#include <initializer_list>

class QDoubleSpinBox;
class QLabel;
class QPushButton;
class QWidget;

/// What the pages that search have alike.
namespace evenkeel::gui {

/// Seconds; 0 reads "none".
void setUpTimeLimit(QDoubleSpinBox& box);
/// The button's click by a key anywhere in the page. No shortcut of the button itself: that one waits for the picture of a click.
void addKey(QWidget& page, const QKeySequence& keys, QPushButton& button);
/// Some air beside the words.
void widen(std::initializer_list<QPushButton*> buttons);
/// In the colour of warnings, as the scheme is now.
void tintAsWarning(QLabel& label);

}  // namespace evenkeel::gui
