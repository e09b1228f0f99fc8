// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/cluster/cluster_inspector.h"

#include <QLabel>
#include <QVBoxLayout>
#include <algorithm>

#include "app/gui/cluster/cluster_text.h"
#include "app/gui/cluster/connection_form.h"
#include "app/gui/cluster/machine_form.h"

namespace evenkeel::gui {

ClusterInspector::ClusterInspector(Workspace& workspace, QWidget* parent)
    : QScrollArea(parent),
      workspace_(workspace),
      title_(new QLabel),
      hint_(new QLabel),
      machines_(new MachineForm(workspace)),
      connections_(new ConnectionForm(workspace)),
      switches_(new SwitchForm(workspace)) {
  setObjectName(QStringLiteral("clusterInspector"));
  setFrameShape(QFrame::NoFrame);
  setWidgetResizable(true);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setMinimumWidth(270);
  QFont font = title_->font();
  font.setBold(true);
  title_->setFont(font);
  title_->setObjectName(QStringLiteral("inspectorTitle"));
  title_->setWordWrap(true);
  hint_->setWordWrap(true);
  hint_->setForegroundRole(QPalette::PlaceholderText);
  auto* content = new QWidget;
  auto* layout = new QVBoxLayout(content);
  layout->setContentsMargins(10, 10, 10, 10);
  layout->setSpacing(8);
  layout->addWidget(title_);
  layout->addWidget(hint_);
  layout->addWidget(machines_);
  layout->addWidget(switches_);
  layout->addWidget(connections_);
  layout->addStretch();
  setWidget(content);
  connect(&workspace_.document, &ProjectDocument::changed, this, &ClusterInspector::refresh);
  connect(&workspace_.selection, &Selection::changed, this, &ClusterInspector::refresh);
  refresh();
}

void ClusterInspector::refresh() {
  const Cluster& cluster = workspace_.document.project().cluster;
  const Items& items = workspace_.selection.items();
  const int machines = machines_->show(items), switches = switches_->show(items), links = connections_->show(items);
  const auto ports = static_cast<int>(items.size()) - machines - switches - links;
  QStringList parts;
  if (machines > 0) parts << (machines == 1 ? tr("1 machine") : tr("%1 machines").arg(machines));
  if (switches > 0) parts << (switches == 1 ? tr("1 switch") : tr("%1 switches").arg(switches));
  if (links > 0) parts << (links == 1 ? tr("1 link") : tr("%1 links").arg(links));
  if (ports > 0) parts << (ports == 1 ? tr("1 port") : tr("%1 ports").arg(ports));
  title_->setText(parts.isEmpty() ? tr("Nothing is selected") : parts.join(QStringLiteral(", ")));
  hint_->setText(cluster.nodes.empty()
                     ? tr("Machines that you draw show their devices, links and SSH access here.")
                     : tr("Click a machine, switch or link to see and change it; drag a frame or press Ctrl+A for many."));
  hint_->setVisible(parts.isEmpty());
}

}  // namespace evenkeel::gui
