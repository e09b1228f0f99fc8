// SPDX-License-Identifier: GPL-3.0-or-later
#include <QApplication>
#include <QSettings>

#include "app/gui/assembly/all_pages.h"
#include "app/gui/theme/theme.h"

int main(int argc, char** argv) {
  using namespace evenkeel::gui;
  QApplication application(argc, argv);
  QApplication::setOrganizationName(QStringLiteral("evenkeel"));
  QApplication::setApplicationName(QStringLiteral("evenkeel"));
  QApplication::setApplicationVersion(QStringLiteral(EVENKEEL_VERSION));
  applyTheme(application, static_cast<ColourScheme>(QSettings().value(QStringLiteral("colourScheme"), 0).toInt()));

  const Folders folders = usualFolders();
  ProjectDocument document(folders.data + QStringLiteral("/recovery"));
  MainWindow window(document);
  addAllPages(window, folders);
  window.restoreLayout();
  window.show();
  if (application.arguments().size() > 1) window.openFile(application.arguments().at(1));
  return QApplication::exec();
}
