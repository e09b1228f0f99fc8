// SPDX-License-Identifier: GPL-3.0-or-later
#include <QApplication>
#include <QSettings>
#include <QStandardPaths>

#include "app/gui/cluster/cluster_page.h"
#include "app/gui/compare/compare_page.h"
#include "app/gui/model/model_page.h"
#include "app/gui/plan/plan_page.h"
#include "app/gui/run/run_page.h"
#include "app/gui/start/start_page.h"
#include "app/gui/theme/theme.h"
#include "app/gui/window/main_window.h"

int main(int argc, char** argv) {
  using namespace evenkeel::gui;
  QApplication application(argc, argv);
  QApplication::setOrganizationName(QStringLiteral("evenkeel"));
  QApplication::setApplicationName(QStringLiteral("evenkeel"));
  QApplication::setApplicationVersion(QStringLiteral(EVENKEEL_VERSION));
  applyTheme(application, static_cast<ColourScheme>(QSettings().value(QStringLiteral("colourScheme"), 0).toInt()));

  ProjectDocument document(QStandardPaths::writableLocation(QStandardPaths::AppDataLocation) + QStringLiteral("/recovery"));
  MainWindow window(document);
  window.addPage(Mode::Start, std::make_unique<StartPage>(window.workspace(), [&](const QString& path) { window.openFile(path); }));
  window.addPage(Mode::Cluster, std::make_unique<ClusterPage>(window.workspace()));
  window.addPage(Mode::Model, std::make_unique<ModelPage>(window.workspace()));
  const QString commandFolder = QStandardPaths::writableLocation(QStandardPaths::AppDataLocation) + QStringLiteral("/commands");
  window.addPage(Mode::Plan, std::make_unique<PlanPage>(window.workspace(), commandFolder));
  window.addPage(Mode::Compare, std::make_unique<ComparePage>(window.workspace(), commandFolder));
  window.addPage(Mode::Run, std::make_unique<RunPage>(window.workspace(), QApplication::applicationDirPath().toStdString()));
  window.restoreLayout();
  window.enter(Mode::Start);
  window.show();
  if (application.arguments().size() > 1) window.openFile(application.arguments().at(1));
  return QApplication::exec();
}
