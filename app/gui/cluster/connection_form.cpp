// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/cluster/connection_form.h"

#include <QFormLayout>
#include <QLabel>

#include "app/gui/cluster/cluster_text.h"
#include "app/gui/cluster/fields.h"

namespace evenkeel::gui {
ConnectionForm::ConnectionForm(Workspace& workspace, QWidget* parent)
    : QWidget(parent),
      workspace_(workspace),
      bandwidth_(
          new NumberField(QStringLiteral("linkBandwidth"), tr("Bandwidth of the link"), tr("GB/s"), kLeastGbs, kMostOfAny)),
      latency_(new NumberField(QStringLiteral("linkLatency"), tr("Latency of the link"), tr("µs"), 0, kMostOfAny)) {
  auto* form = makeForm(this);
  form->addRow(formHeading(tr("Link")));
  form->addRow(tr("Bandwidth"), bandwidth_);
  form->addRow(tr("Latency"), latency_);
  bandwidth_->setSource(tr("What one flow gets in each direction; it overrides NICs and switches between the two machines"));
  connect(bandwidth_, &NumberField::edited, this, [this](double value) {
    workspace_.document.edit(tr("Change link bandwidth"), [&](Project& project) {
      changeLinks(project, items_, [&](Link& link) { setBandwidth(link.spec, fromGbs(value)); });
    });
  });
  connect(latency_, &NumberField::edited, this, [this](double value) {
    workspace_.document.edit(tr("Change link latency"), [&](Project& project) {
      changeLinks(project, items_, [&](Link& link) { link.spec.latency = fromMicroseconds(value); });
    });
  });
  hide();
}

int ConnectionForm::show(const Items& items) {
  const Cluster& cluster = workspace_.document.project().cluster;
  std::vector<const Link*> links;
  items_.clear();
  for (const Link& link : cluster.links) {
    if (!items.contains(linkKey(cluster, link))) continue;
    links.push_back(&link);
    items_.insert(linkKey(cluster, link));
  }
  setVisible(!links.empty());
  if (links.empty()) return 0;
  bandwidth_->setValue(common(links, [](const Link& link) { return gbs(link.spec.bandwidth); }));
  latency_->setValue(common(links, [](const Link& link) { return microseconds(link.spec.latency); }));
  return static_cast<int>(items_.size());
}

SwitchForm::SwitchForm(Workspace& workspace, QWidget* parent)
    : QWidget(parent),
      workspace_(workspace),
      name_(new TextField(QStringLiteral("switchName"), tr("Name of the switch"), {})),
      bandwidth_(
          new NumberField(QStringLiteral("switchBandwidth"), tr("Bandwidth of a port"), tr("GB/s"), kLeastGbs, kMostOfAny)),
      total_(new NumberField(QStringLiteral("switchTotal"), tr("Bandwidth of the whole switch"), tr("GB/s"), 0, kMostOfAny)),
      latency_(new NumberField(QStringLiteral("switchLatency"), tr("Latency of the switch"), tr("µs"), 0, kMostOfAny)) {
  auto* form = makeForm(this);
  form->addRow(formHeading(tr("Switch")));
  form->addRow(tr("Name"), name_);
  form->addRow(tr("Each port"), bandwidth_);
  form->addRow(tr("In all"), total_);
  form->addRow(tr("Latency"), latency_);
  total_->setSource(tr("Through the whole switch at once; 0: not limited"));
  const auto change = [this](const QString& what, const std::function<void(Switch&)>& apply) {
    workspace_.document.edit(what, [&](Project& project) { changeSwitches(project, items_, apply); });
  };
  connect(bandwidth_, &NumberField::edited, this,
          [=](double value) { change(tr("Change switch bandwidth"), [&](Switch& s) { s.bandwidth = fromGbs(value); }); });
  connect(total_, &NumberField::edited, this,
          [=](double value) { change(tr("Change switch bandwidth"), [&](Switch& s) { s.total = fromGbs(value); }); });
  connect(latency_, &NumberField::edited, this,
          [=](double value) { change(tr("Change switch latency"), [&](Switch& s) { s.latency = fromMicroseconds(value); }); });
  connect(name_, &TextField::edited, this, [this](const QString& to) {
    if (items_.size() != 1) return;
    renameItem(workspace_, *name_, std::string(*items_.begin()), to);
  });
  hide();
}

int SwitchForm::show(const Items& items) {
  std::vector<const Switch*> switches;
  items_.clear();
  for (const Switch& s : workspace_.document.project().cluster.switches) {
    if (!items.contains(s.name)) continue;
    switches.push_back(&s);
    items_.insert(s.name);
  }
  setVisible(!switches.empty());
  if (switches.empty()) return 0;
  name_->setValue(switches.size() == 1 ? std::optional(text(switches.front()->name)) : std::nullopt);
  name_->setEnabled(switches.size() == 1);
  bandwidth_->setValue(common(switches, [](const Switch& s) { return gbs(s.bandwidth); }));
  total_->setValue(common(switches, [](const Switch& s) { return gbs(s.total); }));
  latency_->setValue(common(switches, [](const Switch& s) { return microseconds(s.latency); }));
  return static_cast<int>(switches.size());
}

}  // namespace evenkeel::gui
