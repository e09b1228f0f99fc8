// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/assembly/all_pages.h"

#include <QCoreApplication>
#include <QStandardPaths>

#include "app/gui/cluster/cluster_page.h"
#include "app/gui/compare/compare_page.h"
#include "app/gui/discover/discover_dialog.h"
#include "app/gui/model/model_page.h"
#include "app/gui/plan/plan_page.h"
#include "app/gui/run/run_page.h"
#include "app/gui/run/running_runs.h"
#include "app/gui/start/start_page.h"

namespace evenkeel::gui {

Folders usualFolders() {
  return {QStandardPaths::writableLocation(QStandardPaths::AppDataLocation),
          QCoreApplication::applicationDirPath().toStdString()};
}

namespace {

void attach(Workspace& workspace, RunPage& page, const std::string& run) {
  workspace.goTo(Mode::Run);
  page.open(run);
}

/// Start names the runs that go on; whoever opens a project at once is told by a message.
void connectStart(MainWindow& window, RunPage& run) {
  Workspace& workspace = window.workspace();
  const auto running = [&workspace, &run] {
    std::vector<RunningRun> named;
    for (const JobStatus& status : run.running().runs()) {
      named.push_back({titleOf(status), [&workspace, &run, id = status.run] { attach(workspace, run, id); }});
    }
    return named;
  };
  auto start = std::make_unique<StartPage>(
      workspace, StartLinks{[&window](const QString& path) { window.openFile(path); },
                            [&window](Project project) { window.startFrom(std::move(project)); }, running});
  QObject::connect(&run.running(), &RunningRuns::refreshed, start.get(), [&workspace, page = start.get(), running] {
    if (page->isVisible()) return page->fill();
    const auto runs = running();
    if (runs.empty()) return;
    const QString more = runs.size() > 1 ? RunPage::tr(" And %1 more.").arg(runs.size() - 1) : QString();
    workspace.messages.show(MessageLine::Kind::Information, RunPage::tr("Run %1 still runs.").arg(runs.front().title) + more,
                            {{RunPage::tr("Attach"), runs.front().attach}});
  });
  window.addPage(Mode::Start, std::move(start));
  run.running().refresh();
}

}  // namespace

void addAllPages(MainWindow& window, const Folders& folders) {
  Workspace& workspace = window.workspace();
  const QString commands = folders.data + QStringLiteral("/commands");
  auto run = std::make_unique<RunPage>(workspace, folders.programs);
  connectStart(window, *run);
  auto cluster = std::make_unique<ClusterPage>(workspace);
  QObject::connect(cluster.get(), &ClusterPage::findMachinesRequested, cluster.get(), [&workspace, page = cluster.get()] {
    auto* dialog = new DiscoverDialog(workspace, page);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->open();
  });
  window.addPage(Mode::Cluster, std::move(cluster));
  window.addPage(Mode::Model, std::make_unique<ModelPage>(workspace));
  window.addPage(Mode::Plan, std::make_unique<PlanPage>(workspace, commands));
  window.addPage(Mode::Compare, std::make_unique<ComparePage>(workspace, commands));
  window.addPage(Mode::Run, std::move(run));
  window.enter(Mode::Start);
}

}  // namespace evenkeel::gui
