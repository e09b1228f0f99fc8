// SPDX-License-Identifier: GPL-3.0-or-later
// The main of every test of the window: an offscreen application whose settings lie in a folder of the test's own.
#include <gtest/gtest.h>

#include <QApplication>
#include <QTemporaryDir>

#include "app/gui/theme/theme.h"

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const QTemporaryDir home;
  qputenv("XDG_CONFIG_HOME", home.path().toUtf8());
  qputenv("XDG_DATA_HOME", home.path().toUtf8());
  if (qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
  QApplication application(argc, argv);
  QApplication::setOrganizationName(QStringLiteral("evenkeel-test"));
  QApplication::setApplicationName(QStringLiteral("evenkeel-test"));
  evenkeel::gui::applyTheme(application, evenkeel::gui::ColourScheme::Light);
  return RUN_ALL_TESTS();
}
