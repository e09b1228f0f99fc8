// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/discover/discover_dialog.h"

#include <QCheckBox>
#include <QDialogButtonBox>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QPointer>
#include <QPushButton>
#include <QSettings>
#include <QTimer>
#include <QTreeWidget>
#include <QVBoxLayout>

#include "app/gui/cluster/cluster_edits.h"
#include "app/gui/run/login_dialog.h"
#include "launcher/job/job.h"

namespace evenkeel::gui {
namespace {

constexpr int kPollMs = 50;
const QString kHostsSetting = QStringLiteral("discover/hosts");

QString text(const std::string& words) { return QString::fromStdString(words); }

Result<std::vector<ListedHost>> hostsIn(const QString& words, bool isLocal) {
  std::vector<ListedHost> hosts;
  if (isLocal) hosts.push_back({.name = "this-machine", .slotCount = {}, .ssh = {}});
  if (words.trimmed().isEmpty()) return hosts;
  auto named = parseHosts(words.trimmed().toStdString());
  if (!named) return named;
  hosts.insert(hosts.end(), named->begin(), named->end());
  return hosts;
}

}  // namespace

DiscoverDialog::DiscoverDialog(Workspace& workspace, QWidget* parent)
    : QDialog(parent),
      workspace_(workspace),
      desk_(std::make_shared<LoginDesk>()),
      connect_(connectorAsking(desk_)),
      hosts_(new QLineEdit(QSettings().value(kHostsSetting).toString())),
      local_(new QCheckBox(tr("This machine too"))),
      look_(new QPushButton(tr("Look"))),
      state_(new QLabel),
      rows_(new QTreeWidget),
      poll_(new QTimer(this)) {
  setObjectName(QStringLiteral("discoverDialog"));
  setWindowTitle(tr("Find machines"));
  resize(760, 520);
  hosts_->setObjectName(QStringLiteral("discoverHosts"));
  hosts_->setAccessibleName(tr("Hosts"));
  hosts_->setPlaceholderText(tr("gpu-1, gpu[02-08], me@other:2222, or an alias of ~/.ssh/config"));
  local_->setObjectName(QStringLiteral("discoverLocal"));
  look_->setObjectName(QStringLiteral("discoverLook"));
  look_->setDefault(true);
  state_->setObjectName(QStringLiteral("discoverState"));
  state_->setWordWrap(true);
  state_->setText(tr("One script is run on each host; it changes nothing there."));
  rows_->setObjectName(QStringLiteral("discoverRows"));
  rows_->setAccessibleName(tr("What was found"));
  rows_->setHeaderLabels({tr("Machine"), tr("Found")});
  rows_->header()->resizeSection(0, 240);
  rows_->setUniformRowHeights(true);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close);
  add_ = buttons->addButton(tr("Add to the cluster"), QDialogButtonBox::ApplyRole);
  add_->setObjectName(QStringLiteral("discoverAdd"));

  auto* top = new QHBoxLayout;
  auto* label = new QLabel(tr("&Hosts"));
  label->setBuddy(hosts_);
  top->addWidget(label);
  top->addWidget(hosts_, 1);
  top->addWidget(local_);
  top->addWidget(look_);
  auto* layout = new QVBoxLayout(this);
  layout->addLayout(top);
  layout->addWidget(state_);
  layout->addWidget(rows_, 1);
  layout->addWidget(buttons);

  poll_->setInterval(kPollMs);
  connect(poll_, &QTimer::timeout, this, &DiscoverDialog::poll);
  connect(look_, &QPushButton::clicked, this, [this] { arrived_ && !arrived_->isOver && poll_->isActive() ? stopLooking() : look(); });
  connect(hosts_, &QLineEdit::textChanged, this, &DiscoverDialog::refresh);
  connect(local_, &QCheckBox::toggled, this, &DiscoverDialog::refresh);
  connect(rows_, &QTreeWidget::itemChanged, this, &DiscoverDialog::refresh);
  connect(add_, &QPushButton::clicked, this, &DiscoverDialog::addToProject);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  refresh();
}

DiscoverDialog::~DiscoverDialog() {
  desk_->close();  // no thread waits for an answer that cannot come any more
  thread_.request_stop();
}

void DiscoverDialog::look() {
  auto hosts = hostsIn(hosts_->text(), local_->isChecked());
  if (!hosts) {
    state_->setText(QStringLiteral("✕ ") + text(hosts.error().text()));
    return;
  }
  if (hosts->empty()) return;
  QSettings().setValue(kHostsSetting, hosts_->text());
  desk_->beginAnew();
  found_.clear();
  rows_->clear();
  asked_ = hosts->size();
  arrived_ = std::make_shared<Arrived>();
  DiscoveryRequest request;
  request.hosts = *std::move(hosts);
  request.connect = connect_;
  request.onHost = [arrived = arrived_](const FoundHost& found) {
    const std::lock_guard lock(arrived->mutex);
    arrived->hosts.push_back(found);
  };
  QString command = QStringLiteral("evenkeel-cli discover");
  if (local_->isChecked()) command += QStringLiteral(" --local");
  if (!hosts_->text().trimmed().isEmpty()) command += QStringLiteral(" --hosts '") + hosts_->text().trimmed().remove(QLatin1Char(' ')) + QLatin1Char('\'');
  workspace_.showCommand(command + QStringLiteral(" --out cluster.json"));
  thread_ = std::jthread([request = std::move(request), arrived = arrived_](const std::stop_token& stop) {
    (void)discover(request, stop);
    const std::lock_guard lock(arrived->mutex);
    arrived->isOver = true;
  });
  poll_->start();
  refresh();
}

void DiscoverDialog::stopLooking() {
  desk_->close();
  thread_.request_stop();
}

void DiscoverDialog::poll() {
  if (const auto question = desk_->question(); question && login_ == nullptr) {
    login_ = new LoginDialog(*question, *desk_, this);
    login_->setAttribute(Qt::WA_DeleteOnClose);
    connect(login_, &QObject::destroyed, this, [this] { login_ = nullptr; });
    connect(login_, &LoginDialog::settled, &workspace_, &Workspace::showCommand);
    login_->open();
  }
  std::vector<FoundHost> came;
  bool isOver = false;
  {
    const std::lock_guard lock(arrived_->mutex);
    came.swap(arrived_->hosts);
    isOver = arrived_->isOver;
  }
  for (FoundHost& found : came) {
    addRow(found);
    found_.push_back(std::move(found));
  }
  if (isOver) poll_->stop();
  if (isOver || !came.empty()) refresh();
}

void DiscoverDialog::addRow(const FoundHost& found) {
  const QSignalBlocker blocker(rows_);
  auto* host = new QTreeWidgetItem(rows_, {text(found.host.name), {}});
  std::size_t usable = 0;
  for (std::size_t i = 0; i < found.found.size(); ++i) {
    const FoundHost::Slot& slot = found.found[i];
    auto* row = new QTreeWidgetItem(host, {tr("%1 · %2").arg(slot.device.index).arg(text(slot.type.empty() ? slot.device.product : slot.type)), {}});
    row->setData(0, Qt::UserRole, static_cast<qulonglong>(i));
    const bool canBeTicked = !slot.type.empty() && slot.device.problem.empty();
    row->setFlags(canBeTicked ? row->flags() | Qt::ItemIsUserCheckable : row->flags() & ~Qt::ItemIsUserCheckable);
    if (canBeTicked) row->setCheckState(0, slot.isTicked ? Qt::Checked : Qt::Unchecked);
    row->setText(1, slot.type.empty()               ? tr("no figures of this product are known")
                    : !slot.device.problem.empty() ? text(slot.device.problem)
                    : isBusy(slot.device)          ? tr("in use: %1 of %2 GiB").arg(gib(slot.device.used), 0, 'f', 1).arg(gib(slot.device.memory), 0, 'f', 1)
                                                   : text(slot.device.uuid));
    usable += slot.isTicked ? 1 : 0;
  }
  QString worst;
  for (const DiscoveryRow& finding : found.rows) {
    auto* row = new QTreeWidgetItem(host, {QStringLiteral("%1 %2").arg(finding.passed ? QStringLiteral("✓") : QStringLiteral("✕"), text(finding.check)), text(finding.detail)});
    if (!finding.remedy.empty()) row->setText(1, row->text(1) + QStringLiteral("; ") + text(finding.remedy));
    row->setToolTip(1, row->text(1));
    if (!finding.passed && worst.isEmpty()) worst = row->text(1);
  }
  host->setText(1, found.reached ? tr("%1 of %2 devices are free").arg(usable).arg(found.found.size()) + (worst.isEmpty() ? QString() : QStringLiteral(" · ") + worst) : QStringLiteral("✕ ") + worst);
  host->setToolTip(1, host->text(1));
  host->setExpanded(!found.reached || found.found.size() <= 16);
}

std::vector<FoundHost> DiscoverDialog::ticked() const {
  std::vector<FoundHost> hosts = found_;
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    const QTreeWidgetItem* host = rows_->topLevelItem(static_cast<int>(h));
    for (int r = 0; r < host->childCount(); ++r) {
      const QVariant slot = host->child(r)->data(0, Qt::UserRole);
      if (slot.isValid()) hosts[h].found[slot.toULongLong()].isTicked = host->child(r)->checkState(0) == Qt::Checked;
    }
  }
  return hosts;
}

void DiscoverDialog::refresh() {
  const bool isLooking = poll_->isActive();
  look_->setText(isLooking ? tr("Stop") : tr("Look"));
  look_->setEnabled(isLooking || local_->isChecked() || !hosts_->text().trimmed().isEmpty());
  hosts_->setEnabled(!isLooking);
  local_->setEnabled(!isLooking);
  std::size_t devices = 0, missed = 0;
  for (const FoundHost& host : ticked()) {
    missed += host.reached ? 0 : 1;
    for (const FoundHost::Slot& slot : host.found) devices += slot.isTicked ? 1 : 0;
  }
  add_->setEnabled(!isLooking && devices > 0);
  add_->setText(devices == 0 ? tr("Add to the cluster") : devices == 1 ? tr("Add 1 device") : tr("Add %1 devices").arg(devices));
  if (isLooking) state_->setText(tr("%1 of %2 hosts have answered …").arg(found_.size()).arg(asked_));
  else if (!found_.empty())
    state_->setText(missed == 0 ? tr("%1 hosts were looked at. Untick what is not to train.").arg(found_.size())
                                : tr("%1 of %2 hosts could not be looked at; their rows say why.").arg(missed).arg(found_.size()));
}

void DiscoverDialog::addToProject() {
  auto cluster = clusterOf(ticked());
  if (!cluster) {
    state_->setText(QStringLiteral("✕ ") + text(cluster.error().text()));
    return;
  }
  std::optional<Error> objection;
  workspace_.document.edit(tr("Add found machines"), [&](Project& project) {
    auto added = addCluster(project, *std::move(cluster));
    if (added) workspace_.selection.setItems(*std::move(added));
    else objection = added.error();
  });
  if (objection) state_->setText(QStringLiteral("✕ ") + text(objection->text()));
  else accept();
}

}  // namespace evenkeel::gui
