// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QSortFilterProxyModel>
#include <QStandardItemModel>
#include <QWidget>

#include "app/gui/cluster/device_edits.h"

class QButtonGroup;
class QLineEdit;
class QSpinBox;
class QTreeView;

namespace evenkeel::gui {

/// The catalogue's device types by vendor, and the switch. A row that is dragged becomes a machine with `count` such devices.
class PaletteModel final : public QStandardItemModel {
  Q_OBJECT

 public:
  explicit PaletteModel(QObject* parent = nullptr);
  void setCount(int count) { count_ = count; }
  [[nodiscard]] int count() const { return count_; }
  /// "8 x A100-80-SXM", "switch"; empty for a vendor.
  [[nodiscard]] QString textOf(const QModelIndex& index) const;
  [[nodiscard]] QStringList mimeTypes() const override;
  [[nodiscard]] QMimeData* mimeData(const QModelIndexList& indexes) const override;

 private:
  int count_ = 8;
};

/// What can be put on the canvas: filter, count, list. Drag a row, or double click it, or press Return on it.
class MachinePalette final : public QWidget {
  Q_OBJECT

 public:
  explicit MachinePalette(QWidget* parent = nullptr);

 signals:
  void chosen(const QString& text);                                // to be put on the canvas
  void machineChanged(const evenkeel::gui::DeviceGroup& machine);  // what the current row and count come to

 private:
  void setCount(int count);
  void announce();
  QWidget* makeCounts();

  PaletteModel model_;
  QSortFilterProxyModel filtered_;
  QTreeView* view_;
  QButtonGroup* counts_;
  QSpinBox* custom_;
};

}  // namespace evenkeel::gui
