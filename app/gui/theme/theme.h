// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QColor>
#include <QIcon>
#include <QPalette>
#include <string_view>

class QApplication;

namespace evenkeel::gui {

enum class ColourScheme { System, Light, Dark };

/// Colours with a meaning, for the current scheme. Colour never stands alone: a text or a sign says the same.
struct Colours {
  QColor forward, backward, recompute, send, sync, optimizer, waiting;  // timeline
  QColor information, warning, error, good;                             // messages, memory bars at 85 % and 95 %
  QColor canvas, grid, link, accent, subtle;
};

/// Fusion style, our font, and the palette of the scheme; safe to call again when the person switches.
void applyTheme(QApplication& application, ColourScheme scheme);

[[nodiscard]] bool isDark(const QPalette& palette);
[[nodiscard]] const Colours& colours(const QPalette& palette);

/// One of six colours that survive colour blindness and grey print (Okabe and Ito), the same for a device type everywhere:
/// by its place in the cluster's list of types.
[[nodiscard]] QColor deviceColour(int typeIndex);

/// Our own drawn icons, in the palette's text colour: "start", "cluster", "model", "plan", "compare", "run", "undo", "redo", "machine",
/// "switch", "link", "zoom-in", "zoom-out", "fit", "arrange", "search", "stop", "launch", "open", "save", "new", "delete", "duplicate".
[[nodiscard]] QIcon icon(std::string_view name, const QPalette& palette);

}  // namespace evenkeel::gui
