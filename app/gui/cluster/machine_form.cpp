// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/cluster/machine_form.h"

#include <QCheckBox>
#include <QComboBox>
#include <QCompleter>
#include <QFormLayout>
#include <QLabel>
#include <QSpinBox>
#include <algorithm>

#include "app/gui/cluster/cluster_text.h"
#include "app/gui/cluster/device_edits.h"
#include "app/gui/cluster/fields.h"
#include "app/gui/widgets/quantity_text.h"

namespace evenkeel::gui {
namespace {

QString peakText(const DeviceType& type) {
  QStringList parts;
  for (const auto& [precision, peak] : type.peak) {
    const std::string_view word = name(precision);
    parts << QStringLiteral("%1 %2").arg(numberText(tflops(peak) * type.speed),
                                         QString::fromUtf8(word.data(), static_cast<qsizetype>(word.size())));
  }
  return parts.join(QStringLiteral(", ")) + MachineForm::tr(" Tflop/s dense");
}

}  // namespace

QString sourceText(const DeviceType& type, const char* figure) {
  const std::string base = type.name.substr(0, type.name.find('@'));
  const auto& devices = deviceCatalogue();
  const auto known = std::ranges::find(devices, base, [](const CatalogueDevice& device) { return device.type.name; });
  if (known == devices.end() || !known->sources.contains(figure)) return text(type.source);
  const Source& source = known->sources.at(figure);
  QString words = MachineForm::tr("Device table: %1").arg(text(source.title));
  if (!source.date.empty()) words += QStringLiteral(", ") + text(source.date);
  if (!source.address.empty()) words += QStringLiteral("\n") + text(source.address);
  if (!source.verified) words += MachineForm::tr("\nUnverified: written from memory");
  return words;
}

MachineForm::MachineForm(Workspace& workspace, QWidget* parent) : QWidget(parent), workspace_(workspace) {
  setObjectName(QStringLiteral("machineForm"));
  QFormLayout* form = makeForm(this);
  addDevices(*form);
  addFigures(*form);
  addLinks(*form);
  addReach(*form);
  hide();
}

int MachineForm::show(const Items& items) {
  Nodes nodes;
  items_.clear();
  for (const Node& node : workspace_.document.project().cluster.nodes) {
    if (!items.contains(node.name)) continue;
    nodes.push_back(&node);
    items_.insert(node.name);
  }
  setVisible(!nodes.empty());
  if (nodes.empty()) return 0;
  isRefreshing_ = true;
  for (const auto& refresh : refreshers_) refresh(nodes);
  isRefreshing_ = false;
  return static_cast<int>(nodes.size());
}

const DeviceType& MachineForm::firstType(const Node& node) const {
  return workspace_.document.project().cluster.deviceTypes[static_cast<std::size_t>(node.devices.front().type)];
}

void MachineForm::change(const QString& what, const std::function<void(Node&)>& change) {
  if (isRefreshing_) return;
  workspace_.document.edit(tr("Change %1").arg(what), [&](Project& project) { changeMachines(project, items_, change); });
}

void MachineForm::changeDevices(const std::vector<DeviceGroup>& groups) {
  if (isRefreshing_) return;
  std::optional<Error> error;
  workspace_.document.edit(tr("Change devices"), [&](Project& project) {
    if (auto set = setDevices(project.cluster, items_, groups); !set) error = set.error();
  });
  if (!error) return;
  workspace_.messages.showError(*error);
  show(Items(items_));  // the fields show again what is true
}

void MachineForm::addDevices(QFormLayout& form) {
  const auto groupsOf = [this](const Node& node) { return deviceGroups(workspace_.document.project().cluster, node); };
  auto* name = new TextField(QStringLiteral("machineName"), tr("Name"), {});
  form.addRow(tr("Name"), name);
  connect(name, &TextField::edited, this, [this, name](const QString& to) {
    if (items_.size() != 1) return;
    renameItem(workspace_, *name, std::string(*items_.begin()), to);
  });
  auto* type = new QComboBox;
  type->setObjectName(QStringLiteral("machineType"));
  type->setAccessibleName(tr("Device type"));
  type->setEditable(true);
  type->setInsertPolicy(QComboBox::NoInsert);
  type->completer()->setFilterMode(Qt::MatchContains);
  type->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  type->setMinimumContentsLength(12);
  for (const CatalogueDevice& device : deviceCatalogue()) type->addItem(text(device.type.name));
  form.addRow(tr("Type"), type);
  auto* count = new QSpinBox;
  count->setObjectName(QStringLiteral("machineCount"));
  count->setAccessibleName(tr("Devices a machine"));
  count->setRange(0, 99'999'999);  // 0 stands for "they differ"; too many are refused in words, a smaller limit would swallow digits
  count->setSpecialValueText(tr("(mixed)"));
  count->setKeyboardTracking(false);
  form.addRow(tr("Count"), count);
  auto* devices =
      new TextField(QStringLiteral("machineDevices"), tr("Devices in order"), QStringLiteral("4 x A100-80-SXM + 4 x T4"));
  devices->setToolTip(tr("Unlike devices in one machine, joined by +: 4 x A100-80-SXM + 4 x T4"));
  form.addRow(tr("Devices"), devices);

  const auto setType = [this, type] {
    const std::string wanted = type->currentText().trimmed().toStdString();
    if (isRefreshing_ || wanted.empty()) return;
    // Each machine keeps its number of devices: those with equal numbers change together, all in one step.
    std::optional<Error> error;
    workspace_.document.edit(tr("Change the device type"), [&](Project& project) {
      Project after = project;
      for (const std::string& item : items_) {
        const Node* node = findMachine(after.cluster, item);
        if (auto set = setDevices(after.cluster, {item}, {{wanted, static_cast<int>(node->devices.size())}}); !set) {
          error = set.error();
          return;
        }
      }
      project = std::move(after);
    });
    if (!error) return;
    workspace_.messages.showError(*error);
    show(Items(items_));
  };
  connect(type, &QComboBox::activated, this, setType);
  connect(type->lineEdit(), &QLineEdit::editingFinished, this, [type, setType] {
    if (type->lineEdit()->isModified()) setType();
    type->lineEdit()->setModified(false);
  });
  connect(count, &QSpinBox::valueChanged, this, [this](int wanted) {
    if (isRefreshing_ || wanted == 0) return;
    std::optional<Error> error;
    workspace_.document.edit(
        tr("Change the number of devices"),
        [&](Project& project) {
          Project after = project;
          for (const std::string& item : items_) {
            const Node* node = findMachine(after.cluster, item);
            if (auto set = setDevices(after.cluster, {item}, resized(deviceGroups(after.cluster, *node), wanted)); !set) {
              error = set.error();
              return;
            }
          }
          project = std::move(after);
        },
        QStringLiteral("count"));
    if (error) workspace_.messages.showError(*error);
  });
  connect(devices, &TextField::edited, this, [this](const QString& words) {
    const auto groups = parseDevices(words.toStdString());
    if (groups) return changeDevices(*groups);
    workspace_.messages.showError(groups.error());
    show(Items(items_));
  });
  refreshers_.push_back([=, this](const Nodes& nodes) {
    name->setValue(nodes.size() == 1 ? std::optional(text(nodes.front()->name)) : std::nullopt);
    name->setEnabled(nodes.size() == 1);
    const auto groups = common(nodes, groupsOf);
    const auto typeName = common(nodes, [&](const Node& node) {
      const auto own = groupsOf(node);
      return own.size() == 1 ? own.front().type : std::string();
    });
    if (!type->lineEdit()->isModified() || !type->hasFocus()) type->setEditText(typeName ? text(*typeName) : QString());
    type->lineEdit()->setPlaceholderText(tr("(mixed)"));
    type->setToolTip(typeName && !typeName->empty() ? text(firstType(*nodes.front()).source) : QString());
    count->setValue(common(nodes, [](const Node& node) { return static_cast<int>(node.devices.size()); }).value_or(0));
    devices->setValue(groups ? std::optional(text(devicesText(workspace_.document.project().cluster, *nodes.front())))
                             : std::nullopt);
  });
}

void MachineForm::addFigures(QFormLayout& form) {
  auto* memory = new QLabel;
  memory->setObjectName(QStringLiteral("machineMemory"));
  auto* peak = new QLabel;
  peak->setObjectName(QStringLiteral("machinePeak"));
  peak->setWordWrap(true);
  form.addRow(tr("Memory"), memory);
  form.addRow(tr("Peak"), peak);
  refreshers_.push_back([=, this](const Nodes& nodes) {
    const auto index = common(nodes, [](const Node& node) { return node.devices.front().type; });
    const DeviceType& type = firstType(*nodes.front());
    memory->setText(index ? tr("%1 a device").arg(bytesText(type.memory)) : tr("(mixed)"));
    peak->setText(index ? peakText(type) : tr("(mixed)"));
    memory->setToolTip(index ? sourceText(type, "memory") : QString());
    peak->setToolTip(index ? sourceText(type, "peak") : QString());
  });
}

void MachineForm::addNumber(QFormLayout& form, const QString& name, const QString& title, const QString& unit, double least,
                            const Get& get, const Set& set, const Get& usual, const char* figure) {
  auto* field = new NumberField(name, title, unit, least, kMostOfAny);
  form.addRow(title, field);
  connect(field, &NumberField::edited, this,
          [=, this](double value) { change(title.toLower(), [&](Node& node) { set(node, value); }); });
  connect(field, &NumberField::resetAsked, this, [=, this] {
    change(title.toLower(),
           [&](Node& node) { set(node, usual(*findMachine(workspace_.document.project().cluster, node.name))); });
  });
  refreshers_.push_back([=, this](const Nodes& nodes) {
    const auto isUnlike = [&](const Node* node) { return numberText(get(*node)) != numberText(usual(*node)); };
    field->setValue(common(nodes, get), usual && std::ranges::any_of(nodes, isUnlike));
    if (figure != nullptr) field->setSource(sourceText(firstType(*nodes.front()), figure));
  });
}

void MachineForm::addLinks(QFormLayout& form) {
  form.addRow(formHeading(tr("Inside, between two devices")));
  const auto usual = [this](const Node& node) { return defaultLinks(firstType(node)); };
  addNumber(
      form, QStringLiteral("intraBandwidth"), tr("Bandwidth"), tr("GB/s"), kLeastGbs,
      [](const Node& n) { return gbs(n.intra.bandwidth); }, [](Node& n, double value) { setBandwidth(n.intra, fromGbs(value)); },
      [usual](const Node& n) { return gbs(usual(n).intra.bandwidth); }, "intra");
  addNumber(
      form, QStringLiteral("intraLatency"), tr("Latency"), tr("µs"), 0,
      [](const Node& n) { return microseconds(n.intra.latency); },
      [](Node& n, double value) { n.intra.latency = fromMicroseconds(value); },
      [usual](const Node& n) { return microseconds(usual(n).intra.latency); }, "intra");
  form.addRow(formHeading(tr("NIC, to other machines")));
  addNumber(
      form, QStringLiteral("nicBandwidth"), tr("Bandwidth"), tr("GB/s"), kLeastGbs,
      [](const Node& n) { return gbs(n.nic.bandwidth); }, [](Node& n, double value) { setBandwidth(n.nic, fromGbs(value)); },
      [usual](const Node& n) { return gbs(usual(n).nic.bandwidth); }, "nic");
  addNumber(
      form, QStringLiteral("nicLatency"), tr("Latency"), tr("µs"), 0, [](const Node& n) { return microseconds(n.nic.latency); },
      [](Node& n, double value) { n.nic.latency = fromMicroseconds(value); },
      [usual](const Node& n) { return microseconds(usual(n).nic.latency); }, nullptr);
  auto* each = new QCheckBox(tr("each device has its own"));
  each->setObjectName(QStringLiteral("nicPerDevice"));
  form.addRow(QString(), each);
  connect(each, &QCheckBox::clicked, this, [this, each] {
    const bool on = each->checkState() != Qt::Unchecked;
    change(tr("NICs"), [on](Node& node) { node.nicPerDevice = on; });
  });
  refreshers_.push_back([each](const Nodes& nodes) {
    const auto on = common(nodes, [](const Node& node) { return node.nicPerDevice; });
    each->setTristate(!on);
    each->setCheckState(!on ? Qt::PartiallyChecked : *on ? Qt::Checked : Qt::Unchecked);
  });
}

void MachineForm::addSshText(QFormLayout& form, const QString& name, const QString& title, const QString& placeholder,
                             std::string SshTarget::*member) {
  auto* field = new TextField(name, title, placeholder);
  form.addRow(title, field);
  connect(field, &TextField::edited, this, [=, this](const QString& value) {
    change(QStringLiteral("SSH"), [&](Node& node) {
      node.ssh.*member = value.toStdString();
      if (node.ssh.host.empty()) node.ssh = {};  // this machine: there is nothing to reach
    });
  });
  refreshers_.push_back([=](const Nodes& nodes) {
    const auto value = common(nodes, [member](const Node& node) { return node.ssh.*member; });
    field->setValue(value ? std::optional(text(*value)) : std::nullopt);
    if (member != &SshTarget::host)
      field->setEnabled(std::ranges::none_of(nodes, [](const Node* node) { return node->ssh.host.empty(); }));
  });
}

void MachineForm::addReach(QFormLayout& form) {
  form.addRow(formHeading(tr("SSH")));
  addSshText(form, QStringLiteral("sshHost"), tr("Host"), tr("this computer"), &SshTarget::host);
  addSshText(form, QStringLiteral("sshUser"), tr("User"), tr("as ssh's settings say"), &SshTarget::user);
  auto* port = new QSpinBox;
  port->setObjectName(QStringLiteral("sshPort"));
  port->setAccessibleName(tr("SSH port"));
  port->setRange(0, 65535);  // 0 stands for "they differ"
  port->setSpecialValueText(tr("(mixed)"));
  port->setKeyboardTracking(false);
  form.addRow(tr("Port"), port);
  connect(port, &QSpinBox::valueChanged, this, [this](int value) {
    if (value > 0) change(QStringLiteral("SSH"), [value](Node& node) { node.ssh.port = value; });
  });
  refreshers_.push_back([port](const Nodes& nodes) {
    port->setValue(common(nodes, [](const Node& node) { return node.ssh.port; }).value_or(0));
    port->setEnabled(std::ranges::none_of(nodes, [](const Node* node) { return node->ssh.host.empty(); }));
  });
  addSshText(form, QStringLiteral("sshIdentity"), tr("Key file"), tr("agent or default key"), &SshTarget::identity);
  form.addRow(formHeading(tr("Cost")));
  addNumber(
      form, QStringLiteral("pricePerHour"), tr("Price"), tr("per h"), 0, [](const Node& n) { return n.pricePerHour; },
      [](Node& n, double value) { n.pricePerHour = value; }, {}, nullptr);
}

}  // namespace evenkeel::gui
