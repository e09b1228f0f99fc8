// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/run/desktop_message.h"

#include <QApplication>
#include <QProcess>
#include <QStandardPaths>
#include <QWidget>

namespace evenkeel::gui {

DesktopMessage desktopMessageOf(QWidget& page) {
  return [&page](const QString& title, const QString& text) {
    if (page.window()->isActiveWindow()) return;
    QApplication::alert(page.window());
    const QString program = QStandardPaths::findExecutable(QStringLiteral("notify-send"));
    if (!program.isEmpty())
      QProcess::startDetached(program, {QStringLiteral("--app-name=Evenkeel"), QStringLiteral("--"), title, text});
  };
}

}  // namespace evenkeel::gui
