// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <functional>

class QWidget;

namespace evenkeel::gui {

/// Shows a person who looks elsewhere that something has happened: title, text.
using DesktopMessage = std::function<void(const QString&, const QString&)>;

/// The desktop's own way: the window asks for attention, and notify-send, where there is one, shows the message. Does nothing
/// while the window is in front.
[[nodiscard]] DesktopMessage desktopMessageOf(QWidget& page);

}  // namespace evenkeel::gui
