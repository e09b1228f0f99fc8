// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/cluster/machine_palette.h"

#include <QButtonGroup>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QMimeData>
#include <QSpinBox>
#include <QToolButton>
#include <QTreeView>
#include <QVBoxLayout>
#include <map>

#include "app/gui/cluster/canvas.h"
#include "app/gui/cluster/cluster_text.h"
#include "app/gui/widgets/quantity_text.h"

namespace evenkeel::gui {
namespace {

constexpr int kTypeRole = Qt::UserRole + 1;
constexpr const char* kSwitch = "switch";

QString tipOf(const DeviceType& type) {
  double best = 0;
  for (const auto& [precision, peak] : type.peak) best = std::max(best, tflops(peak));
  return QObject::
      tr("<b>%1</b> %2<br>%3 Tflop/s dense at best, %4, memory %5 GB/s<br>inside a machine %6 GB/s, NIC %7 GB/s%8<br><i>%9</i>")
          .arg(text(type.name).toHtmlEscaped(), text(type.vendor).toHtmlEscaped(), numberText(best), bytesText(type.memory),
               numberText(gbs(type.memoryBandwidth)), numberText(gbs(type.intra.bandwidth)), numberText(gbs(type.nicBandwidth)),
               type.nicPerDevice ? MachinePalette::tr(" each") : QString(), text(type.source).toHtmlEscaped());
}

QList<QStandardItem*> row(const QString& name, const QString& detail, const QString& type, const QString& tip) {
  QList<QStandardItem*> items{new QStandardItem(name), new QStandardItem(detail)};
  items[1]->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
  for (QStandardItem* item : items) {
    item->setEditable(false);
    item->setData(type, kTypeRole);
    item->setToolTip(tip);
    item->setDragEnabled(!type.isEmpty());
  }
  return items;
}

}  // namespace

PaletteModel::PaletteModel(QObject* parent) : QStandardItemModel(0, 2, parent) {
  setHorizontalHeaderLabels({tr("Type"), tr("Memory")});
  std::map<std::string, QStandardItem*> vendors;
  const auto vendorItem = [&](const std::string& vendor) {
    QStandardItem*& item = vendors[vendor];
    if (item == nullptr) {
      QString title = text(vendor);
      if (!title.isEmpty()) title[0] = title[0].toUpper();
      auto items = row(title, {}, {}, {});
      item = items.front();
      appendRow(items);
    }
    return item;
  };
  for (const CatalogueDevice& device : deviceCatalogue()) {
    const DeviceType& type = device.type;
    vendorItem(type.vendor)->appendRow(row(text(type.name), bytesText(type.memory), text(type.name), tipOf(type)));
  }
  sort(0);
  auto network = row(tr("Network"), {}, {}, {});
  network.front()->appendRow(row(tr("Switch"), {}, QString::fromLatin1(kSwitch),
                                 tr("Joins machines: all its members reach each other at its bandwidth")));
  insertRow(0, network);
}

QString PaletteModel::textOf(const QModelIndex& index) const {
  const QString type = index.data(kTypeRole).toString();
  return type.isEmpty() || type == QString::fromLatin1(kSwitch) ? type : QStringLiteral("%1 x %2").arg(count_).arg(type);
}

QStringList PaletteModel::mimeTypes() const { return {kMachineMime, QStringLiteral("text/plain")}; }

QMimeData* PaletteModel::mimeData(const QModelIndexList& indexes) const {
  const QString words = indexes.isEmpty() ? QString() : textOf(indexes.front());
  if (words.isEmpty()) return nullptr;
  auto* data = new QMimeData;
  data->setData(kMachineMime, words.toUtf8());
  data->setText(words);
  return data;
}

MachinePalette::MachinePalette(QWidget* parent)
    : QWidget(parent), view_(new QTreeView), counts_(new QButtonGroup(this)), custom_(new QSpinBox) {
  setObjectName(QStringLiteral("machinePalette"));
  auto* filter = new QLineEdit;
  filter->setObjectName(QStringLiteral("paletteFilter"));
  filter->setAccessibleName(tr("Filter device types"));
  filter->setPlaceholderText(tr("Filter types"));
  filter->setClearButtonEnabled(true);
  filtered_.setSourceModel(&model_);
  filtered_.setRecursiveFilteringEnabled(true);
  filtered_.setAutoAcceptChildRows(true);
  filtered_.setFilterCaseSensitivity(Qt::CaseInsensitive);
  view_->setObjectName(QStringLiteral("paletteView"));
  view_->setAccessibleName(tr("Device types; Return adds a machine"));
  view_->setModel(&filtered_);
  view_->setHeaderHidden(true);
  view_->setDragEnabled(true);
  view_->setDragDropMode(QAbstractItemView::DragOnly);
  view_->setIndentation(12);
  view_->setUniformRowHeights(true);
  view_->header()->setStretchLastSection(false);
  view_->header()->setSectionResizeMode(0, QHeaderView::Stretch);
  view_->header()->setSectionResizeMode(1, QHeaderView::ResizeToContents);
  view_->expandAll();
  connect(filter, &QLineEdit::textChanged, this, [this](const QString& words) {
    filtered_.setFilterFixedString(words);
    view_->expandAll();
  });
  connect(view_, &QTreeView::activated, this, [this](const QModelIndex& index) {
    const QString words = model_.textOf(filtered_.mapToSource(index));
    if (!words.isEmpty()) emit chosen(words);
  });
  connect(view_->selectionModel(), &QItemSelectionModel::currentChanged, this, &MachinePalette::announce);
  auto* heading = new QLabel(tr("Devices a machine"));
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(8, 8, 8, 4);
  layout->setSpacing(6);
  layout->addWidget(filter);
  layout->addWidget(view_, 1);
  layout->addWidget(heading);
  layout->addWidget(makeCounts());
}

QWidget* MachinePalette::makeCounts() {
  auto* line = new QWidget;
  auto* layout = new QHBoxLayout(line);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(3);
  for (const int count : {8, 4, 2, 1}) {
    auto* button = new QToolButton;
    button->setText(QString::number(count));
    button->setCheckable(true);
    button->setToolTip(count == 1 ? tr("1 device a machine") : tr("%1 devices a machine").arg(count));
    button->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    counts_->addButton(button, count);
    layout->addWidget(button);
  }
  custom_->setObjectName(QStringLiteral("paletteCount"));
  custom_->setAccessibleName(tr("Devices a machine"));
  custom_->setRange(1, 1024);
  layout->addWidget(custom_);
  connect(counts_, &QButtonGroup::idClicked, this, &MachinePalette::setCount);
  connect(custom_, &QSpinBox::valueChanged, this, &MachinePalette::setCount);
  setCount(model_.count());
  return line;
}

void MachinePalette::setCount(int count) {
  model_.setCount(count);
  custom_->setValue(count);
  counts_->setExclusive(false);
  for (QAbstractButton* button : counts_->buttons()) button->setChecked(counts_->id(button) == count);
  counts_->setExclusive(counts_->button(count) != nullptr);
  announce();
}

void MachinePalette::announce() {
  const QString type = view_->currentIndex().data(kTypeRole).toString();
  if (!type.isEmpty() && type != QString::fromLatin1(kSwitch)) emit machineChanged({type.toStdString(), model_.count()});
}

}  // namespace evenkeel::gui
